"""Nodes that are being built while more pods come (spec/karpenter-scheduling.md 8.9)."""

from __future__ import annotations

import random
from typing import Any

import pytest

from karpenter_linode.model import codec
from karpenter_linode.scheduling import StateNode

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
X = {"app": "x"}
SELECTOR = {"matchLabels": X}


def under_way(make: Any, name: str, **given: Any) -> StateNode:
    """A NodeClaim that is launched and has no Node yet."""
    labels = {ZONE: given.pop("zone", "test-zone-1"), "kubernetes.io/arch": "amd64"}
    state = make.node(name, with_node=False, initialized=False, registered=False, **given)
    plain = codec.to_plain(state.node_claim)
    plain["metadata"]["labels"] |= labels
    return StateNode(None, codec.convert(plain, type(state.node_claim)))


@pytest.mark.parametrize(
    ("given", "joins"),
    [
        ({"requests": {"cpu": "1"}}, True),
        ({"nodeSelector": {ZONE: "test-zone-1"}}, True),
        ({"nodeSelector": {ZONE: "test-zone-2"}}, False),
        ({"requests": {"cpu": "16"}}, False),
        ({"nodeSelector": {"kubernetes.io/arch": "arm64"}}, False),
    ],
)
def test_a_node_under_way_is_used_by_pods_that_it_will_suit(make: Any, given: dict[str, Any], *, joins: bool) -> None:
    solution = make.solve([make.pod(**given)], nodes=[under_way(make, "n")])
    assert [item.node for item in solution.existing] == (["claim-of-n"] if joins else [])


@pytest.mark.parametrize(("key", "expected"), [(ZONE, [1, 1]), (HOSTNAME, [1, 1])])
def test_spreading_goes_on_from_where_earlier_pods_were_sent(make: Any, key: str, expected: list[int]) -> None:
    """The pod that the node is built for is bound to it by name already; new ones go elsewhere."""
    rule = {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR}
    node = make.node("n", labels={ZONE: "test-zone-1"}, initialized=False)
    pods = [make.pod(labels=X, topologySpreadConstraints=[rule]) for _ in range(2)]
    solution = make.solve(pods, nodes=[node], bound_pods=[make.running("n", labels=X)])
    assert solution.existing == ()
    assert [len(claim.pods) for claim in solution.new_node_claims] == expected


def test_company_by_zone_is_found_on_a_node_under_way(make: Any) -> None:
    term = {"topologyKey": ZONE, "labelSelector": SELECTOR}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    node = make.node("n", labels={ZONE: "test-zone-2"}, initialized=False)
    pod = make.pod(labels=X, affinity=affinity)
    solution = make.solve([pod], nodes=[node], bound_pods=[make.running("n", labels=X)])
    assert [item.node for item in solution.existing] == ["n"]


def test_an_initialized_node_comes_before_ninety_nine_others(make: Any) -> None:
    others = [make.node(f"a{index:02}", initialized=False) for index in range(50)]
    others += [under_way(make, f"b{index:02}") for index in range(49)]
    solution = make.solve([make.pod()], nodes=[*others, make.node("z")])
    assert [item.node for item in solution.existing] == ["z"]


def test_a_hundred_pods_fit_on_nodes_that_nobody_manages(make: Any) -> None:
    nodes = [make.node(f"n{index}", managed=False, allocatable={"pods": "10"}) for index in range(10)]
    solution = make.solve([make.pod() for _ in range(100)], pools=[], nodes=nodes)
    assert [len(item.pods) for item in solution.existing] == [10] * 10


def test_a_device_that_a_starting_node_reports_as_none_yet_is_not_bought_twice(make: Any) -> None:
    vendor = "fake.com/vendor-a"
    plain = codec.to_plain(make.node("n", initialized=False, allocatable={vendor: "1"}))
    plain["node"]["status"]["allocatable"][vendor] = plain["node"]["status"]["capacity"][vendor] = "0"
    solution = make.solve([make.pod(requests={vendor: "1"})], nodes=[codec.convert(plain, StateNode)])
    assert [item.node for item in solution.existing] == ["n"]


def test_batch_after_batch_leaves_no_two_nodes_with_room_for_the_smallest_pod(make: Any) -> None:
    """Pods of ten batches, each bound before the next comes, on nodes as large as the plan."""
    draw = random.Random(7)  # noqa: S311 - equal seeds give equal batches
    plan = make.plan("it", capacity={"cpu": "8", "memory": "64Gi", "pods": "100"}, overhead={})
    nodes: list[StateNode] = []
    bound: list[Any] = []
    for _ in range(10):
        pods = [make.pod(requests={"cpu": "1"}) for _ in range(draw.randint(1, 10))]
        solution = make.solve(pods, plans=[plan], nodes=nodes, bound_pods=bound)
        placed = {item.node: item.pods for item in solution.existing}
        for claim in solution.new_node_claims:
            name = f"n{len(nodes):02}"
            nodes.append(make.node(name, allocatable={"cpu": "8", "memory": "64Gi", "pods": "100"}))
            placed[name] = claim.pods
        bound += [make.running(name, ref.name, requests={"cpu": "1"}) for name, refs in placed.items() for ref in refs]
    used = [sum(pod.spec.node_name == node.node.name for pod in bound) for node in nodes if node.node is not None]
    assert sum(pods < 8 for pods in used) <= 1
