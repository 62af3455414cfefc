"""Pods keep the place that was planned for them while their node is built."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from karpenter_linode.model.core import Pod
from karpenter_linode.model.karpenter import NodeClaim
from karpenter_linode.operator.embedded import EmbeddedWorld
from karpenter_linode.operator.options import Options
from karpenter_linode.sim.loop import run_virtual

ONE_GPU = Path(__file__).parents[3] / "examples" / "one-gpu"
KINDS: dict[str, dict[str, Any]] = {"all": {"allocationMode": "All"}, "two": {"count": 2}}
EACH = 3


def template(name: str) -> dict[str, Any]:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", **KINDS[name]}}
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": name}}
    return {**kind, "spec": {"spec": {"devices": {"requests": [request]}}}}


def pod(kind: str, number: int) -> dict[str, Any]:
    spec = {
        "tolerations": [{"operator": "Exists"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": kind}],
        "containers": [{"name": "c", "image": "x", "resources": {"claims": [{"name": "gpu"}]}}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{kind}-{number}"}, "spec": spec}


def manifests() -> list[dict[str, Any]]:
    files = [ONE_GPU / name for name in ("deviceclass.yaml", "nodeclass.yaml", "nodepool.yaml")]
    found: list[dict[str, Any]] = [item for path in files for item in yaml.safe_load_all(path.read_text())]
    for item in found:
        if item["kind"] == "NodePool":
            plans = item["spec"]["template"]["spec"]["requirements"][0]
            plans["values"] = ["g2-gpu-rtx4000a1-s", "g2-gpu-rtx4000a2-s"]
            del item["spec"]["limits"]
    return [*found, *map(template, KINDS), *(pod(kind, number) for number in range(EACH) for kind in KINDS)]


@pytest.mark.parametrize("seed", range(4))
def test_pods_content_with_any_node_do_not_move_to_those_that_others_wait_for(seed: int) -> None:
    """A pod that asks for all devices of its node fits nodes with one and with two, and nodes have random names."""

    async def live() -> tuple[set[str], set[str]]:
        world = EmbeddedWorld(manifests(), seed=seed, options=Options(ignore_dra_requests=False))
        await world.start()
        try:
            store = world.cluster.store
            assert await world.run_until(lambda: len(list(store.all(NodeClaim))) == EACH * len(KINDS), 60)
            planned = {claim.name for claim in store.all(NodeClaim)}
            # Until the first node takes a pod nothing has changed, though every ten seconds the pods are planned anew.
            assert await world.run_until(lambda: any(pod.spec.node_name for pod in store.all(Pod)), 1200)
            return planned, {claim.name for claim in store.all(NodeClaim)}
        finally:
            await world.stop()

    planned, there = run_virtual(live())
    assert there == planned
