"""Pods that arrive while their node is being removed as empty: either the node stays, or the pod never got there."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.model.core import Node, Pod
from karpenter_linode.model.karpenter import NodeClaim
from karpenter_linode.operator.embedded import EmbeddedWorld, run_embedded
from karpenter_linode.operator.options import Options


def late_pod(manifests: list[dict[str, Any]], **annotations: str) -> dict[str, Any]:
    pod = next(item for item in manifests if item["kind"] == "Pod")
    pod["metadata"] = {
        "name": "late",
        "annotations": {"simulate.karpenter-linode/runtime": "3m", **annotations},
    }
    return pod


@pytest.mark.parametrize("seconds", [0.5, 5, 10, 14, 16, 18, 20, 20.5, 21, 21.5, 22, 22.5, 23, 24, 26, 30, 40])
@pytest.mark.parametrize("protected", [True, False], ids=["protected", "plain"])
def test_a_pod_that_comes_during_the_removal_is_never_killed(example: Any, seconds: float, protected: Any) -> None:
    annotations = {"karpenter.sh/do-not-disrupt": "true"} if protected else {}

    async def scenario(world: EmbeddedWorld) -> None:
        def ended() -> bool:
            pods = list(world.cluster.store.all(Pod))
            return bool(pods) and pods[0].status.phase == "Succeeded"

        await world.run_until(ended, 1200, step=0.25)
        await world.clock.sleep(seconds)
        world.cluster.apply([late_pod(example(), **annotations)])

    outcome = run_embedded(example("2m"), seed=7, options=Options(ignore_dra_requests=False), scenario=scenario)
    late = next(pod for pod in outcome.pods if pod.pod == "default/late")
    evictions = [entry for entry in outcome.journal if "Evicted pod" in entry.text and "late" in entry.subject]
    assert evictions == []
    assert late.phase == "Succeeded"
    assert outcome.left == ()
    assert len(outcome.node_claims) <= 2


def test_what_a_dead_controller_left_half_done_is_undone(example: Any) -> None:
    async def scenario(world: EmbeddedWorld) -> None:
        def tainted() -> bool:
            return any(
                taint.key == "karpenter.sh/disrupted"
                for node in world.cluster.store.all(Node)
                for taint in node.spec.taints
            )

        assert await world.run_until(tainted, 1200, step=0.05)
        claim = next(iter(world.cluster.store.all(NodeClaim)))
        assert claim.metadata.deletion_timestamp is None
        await world.kill_controller()
        world.cluster.apply([late_pod(example())])
        await world.start_controller()
        assert await world.run_until(lambda: not tainted(), 30)

    outcome = run_embedded(example("2m"), seed=7, options=Options(ignore_dra_requests=False), scenario=scenario)
    assert {pod.phase for pod in outcome.pods} == {"Succeeded"}
    assert len(outcome.node_claims) == 1
    assert outcome.left == ()
