"""Solutions in text and as data, against recorded output."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from karpenter_linode.explain.solution import solution_data, solution_lines
from karpenter_linode.model.karpenter import NodeClaim
from karpenter_linode.model.meta import ObjectMeta
from karpenter_linode.model.reason import Reason
from karpenter_linode.scheduling.problem import (
    ClaimPlacement,
    DeviceChoice,
    ExistingPlacement,
    PlannedNodeClaim,
    PodRef,
    Solution,
    Unplaced,
)

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

PLANS = ("g2-gpu-rtx4000a1-s", "g2-gpu-rtx4000a1-m")
CLAIM = NodeClaim(metadata=ObjectMeta(generate_name="gpu-"))
NO_GPU = tuple(Reason("no-devices", "has no GPU", subject=f"plan g6-standard-{n}") for n in (1, 2, 4, 6, 8, 16, 20))
REFUSED = Reason(
    "dra",
    "no instance type can satisfy the allocation",
    subject="NodePool gpu",
    children=(Reason("few", "predicts 1 device, 2 asked", subject="plan g2-gpu-rtx4000a1-s"), *NO_GPU),
)


def planned(number: int, pods: tuple[str, ...]) -> PlannedNodeClaim:
    refs = tuple(PodRef("default", name) for name in pods)
    return PlannedNodeClaim(f"gpu-{number}", "gpu", CLAIM, PLANS, 520_000_000, refs, NO_GPU)


CHOICES = tuple(DeviceChoice("gpu", "virtual/gpu.nvidia.com/predicted/gpu-0", plan) for plan in PLANS)
SOLUTIONS = {
    "nothing": Solution(),
    "placed": Solution(
        new_node_claims=(planned(1, ("a", "b")),),
        claims=(ClaimPlacement("default/shared", "gpu-1", CHOICES),),
    ),
    "mixed": Solution(
        new_node_claims=(planned(1, ("a",)), planned(2, ("b",))),
        existing=(ExistingPlacement("lke1-2-3", (PodRef("default", "c"),)),),
        unplaced=tuple(Unplaced(PodRef("default", f"big-{n}"), REFUSED) for n in range(8)),
        claims=(
            ClaimPlacement("default/a-gpu", "gpu-1", CHOICES),
            ClaimPlacement("default/b-gpu", "gpu-2", CHOICES),
        ),
        notes=(Reason("static", "NodePool static is not asked: it has replicas", subject="NodePool static"),),
    ),
}


@pytest.mark.parametrize("name", SOLUTIONS)
@pytest.mark.parametrize("explain", [False, True], ids=["short", "explained"])
def test_text(name: str, explain: bool, snapshot: SnapshotAssertion) -> None:
    lines = solution_lines(SOLUTIONS[name], explain=explain)
    assert "\n".join(f"{line.kind:6}|{line.text}" for line in lines) == snapshot


@pytest.mark.parametrize("name", SOLUTIONS)
def test_data(name: str, snapshot: SnapshotAssertion) -> None:
    assert json.dumps(solution_data(SOLUTIONS[name]), indent=1) == snapshot


def test_pods_that_fail_alike_are_told_together() -> None:
    titles = [line.text for line in solution_lines(SOLUTIONS["mixed"]) if "not placed:" in line.text]
    (title,) = titles
    assert title.startswith(
        "8 pods default/big-0, default/big-1, default/big-2, default/big-3, default/big-4 and 3 others"
    )
    assert title.endswith("not placed: no instance type can satisfy the allocation")


def test_data_says_whether_everything_is_placed_and_what_it_costs() -> None:
    assert solution_data(SOLUTIONS["placed"])["placed"] is True
    data = solution_data(SOLUTIONS["mixed"])
    assert data["placed"] is False
    assert data["summary"] == {"newNodes": 2, "placedPods": 3, "unplacedPods": 8, "pricePerHour": "1.04"}


def test_many_new_nodes_that_look_the_same_are_told_together() -> None:
    solution = Solution(new_node_claims=tuple(planned(number, (f"p{number}",)) for number in range(1, 101)))
    lines = [line.text for line in solution_lines(solution)]
    assert lines[2].split() == ["NODECLAIM", "NODEPOOL", "PLAN", "PRICE/H", "PODS", "DEVICES", "NODES"]
    assert lines[3].startswith("gpu-1 and 99 others")
    assert lines[3].endswith("100")
    assert len(lines) == 4


def test_a_published_device_is_named_in_full() -> None:
    placed = SOLUTIONS["placed"]
    choice = DeviceChoice("gpu", "gpu.nvidia.com/node-1/gpu-3")
    published = Solution(placed.new_node_claims, claims=(ClaimPlacement("default/c", "gpu-1", (choice,)),))
    lines = [line.text for line in solution_lines(published, explain=True)]
    assert "  claim default/c, request gpu: device gpu.nvidia.com/node-1/gpu-3" in lines


def test_new_node_claims_with_the_same_plans_are_explained_together() -> None:
    other = replace(planned(4, ("d",)), instance_types=PLANS[:1])
    claims = (*(planned(number, (f"p{number}",)) for number in range(1, 4)), other, planned(5, ("e", "f")))
    lines = [line.text for line in solution_lines(Solution(new_node_claims=claims[:4]), explain=True)]
    assert [line for line in lines if "from NodePool" in line] == [
        "gpu-1 to gpu-3 from NodePool gpu",
        "gpu-4 from NodePool gpu",
    ]
    assert [line for line in lines if "pods" in line][1:] == [
        "  pods of gpu-1: default/p1",
        "  pods of gpu-2: default/p2",
        "  pods of gpu-3: default/p3",
        "  pods: default/d",
    ]
    assert lines.count("  plans not allowed") == 2
    lines = [line.text for line in solution_lines(Solution(new_node_claims=claims), explain=True)]
    assert "gpu-1, gpu-2, gpu-3, gpu-5 from NodePool gpu" in lines, "gpu-4 stands between them, and is not one of them"
