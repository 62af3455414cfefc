"""The described example on the real control plane: from the pending pod to the emptied pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from karpenter_world import KarpenterWorld, example, is_true

from karpenter_linode.sim.kubelet import RUNTIME_ANNOTATION

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from controlplane import ControlPlane

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]
PLAN = "g2-gpu-rtx4000a1-s"


@pytest.fixture
def world(control_plane: ControlPlane, tmp_path: Path) -> Iterator[KarpenterWorld]:
    with KarpenterWorld(control_plane, tmp_path) as world:
        yield world


def test_one_gpu_pod_gets_one_node_and_nothing_is_left(world: KarpenterWorld) -> None:
    objects = example("one-gpu")
    objects["Pod"]["metadata"]["annotations"] = {RUNTIME_ANNOTATION: "3s"}
    world.apply(*objects.values())

    (claim,) = world.wait("a NodeClaim", world.claims)
    assert [item["values"] for item in claim["spec"]["requirements"] if item["key"].endswith("instance-type")] == [
        [PLAN]
    ]
    world.wait("the node to be initialized", lambda: any(is_true(item, "Initialized") for item in world.claims()))
    node = world.wait("the pod to be bound", lambda: world.pod("gpu-job")["spec"].get("nodeName"))
    assert node == world.claims()[0]["status"]["nodeName"]
    world.wait("the pod to succeed", lambda: world.pod("gpu-job")["status"]["phase"] == "Succeeded")
    world.wait("the NodeClaim to go", lambda: world.claims() == [], 120)
    world.wait("the Linode to go", lambda: world.cloud.machines() == 0)
    assert world.nodes.problems == []
