"""Pools of published slices (spec/dra-allocation.md 10: slices and ids, pools)."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from karpenter_linode.dra.features import ALL_FEATURES
from karpenter_linode.dra.pools import INVALID, UPDATING, ClaimReach, NodeReach, gather
from karpenter_linode.dra.selector import Shapes
from karpenter_linode.model import codec
from karpenter_linode.model.labels import WELL_KNOWN
from karpenter_linode.model.requirements import Requirements
from karpenter_linode.model.resource import DeviceID

ZONE = "topology.kubernetes.io/zone"
N1 = NodeReach("n1", {ZONE: "z1", "acme.io/gen": "5"})


def pool(*slices: Any, reach: Any = N1, newest_only: bool = False) -> Any:
    return gather(slices, reach, ALL_FEATURES, Shapes(), newest_only=newest_only)


def names(found: Any) -> list[str]:
    return [candidate.id.device for candidate in found.candidates]


def selector(*terms: list[dict[str, Any]]) -> dict[str, Any]:
    return {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": list(term)} for term in terms]}}


def within(key: str, *values: str, operator: str = "In") -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def counters(*sets: str, **fields: Any) -> dict[str, Any]:
    return {
        "sharedCounters": [{"name": name, "counters": {"memory": {"value": "8"}}} for name in sets],
        "devices": [],
        **fields,
    }


def consumer(b: Any, name: str = "part", counter_set: str = "cs", counter: str = "memory") -> dict[str, Any]:
    return b.device(name, consumesCounters=[{"counterSet": counter_set, "counters": {counter: {"value": "2"}}}])


def counter_slice(b: Any, *sets: str, count: int = 2, **fields: Any) -> Any:
    return b.slice_of([], node="n1", count=count, sharedCounters=counters(*sets)["sharedCounters"], **fields)


def test_ids_differ_by_driver_pool_device_and_prediction() -> None:
    ids = [DeviceID(*parts) for parts in itertools.product(("d1", "d2"), ("p1", "p2"), ("x", "y"), (False, True))]
    assert len(set(ids)) == 16
    assert str(DeviceID("d", "p", "x", template=True)) == "virtual/d/p/x"
    assert str(DeviceID("d", "p", "x")) == "d/p/x"


def test_all_nodes_slices_are_always_in_reach(b: Any) -> None:
    item = b.slice_of([b.device("d")], allNodes=True)
    assert names(pool(item)) == ["d"]
    assert names(pool(item, reach=ClaimReach(Requirements(), WELL_KNOWN))) == ["d"]


def test_node_slices_belong_to_their_node(b: Any) -> None:
    item = b.slice_of([b.device("d")], node="n1")
    assert names(pool(item)) == ["d"]
    assert pool(item, reach=NodeReach("n2", {})) is None
    assert pool(item, reach=ClaimReach(Requirements(), WELL_KNOWN)) is None


def test_a_slice_without_any_selection_is_out_of_reach(b: Any) -> None:
    assert pool(b.slice_of([b.device("d")])) is None


@pytest.mark.parametrize(
    ("terms", "reached"),
    [
        ([[within(ZONE, "z1")]], True),
        ([[within(ZONE, "z2")]], False),
        ([[within(ZONE, "z2")], [within(ZONE, "z1")]], True),
        ([[within(ZONE, "z1"), within("acme.io/gen", "4", operator="Gt")]], True),
        ([[within(ZONE, "z1"), within("acme.io/gen", "6", operator="Gt")]], False),
        ([[within("absent", operator="Exists")]], False),
        ([[within("absent", operator="DoesNotExist")]], True),
        ([[]], False),
    ],
)
def test_any_term_suffices_and_all_its_expressions_must_hold(b: Any, terms: list[Any], *, reached: bool) -> None:
    found = pool(b.slice_of([b.device("d")], **selector(*terms)))
    assert (found is not None) is reached


def test_a_new_node_reaches_what_its_requirements_still_allow(b: Any) -> None:
    item = b.slice_of([b.device("d")], **selector([within(ZONE, "z1")]))
    assert pool(item, reach=ClaimReach(Requirements.from_labels({ZONE: "z1"}), WELL_KNOWN)) is not None
    assert pool(item, reach=ClaimReach(Requirements.from_labels({ZONE: "z2"}), WELL_KNOWN)) is None
    assert pool(item, reach=ClaimReach(Requirements(), WELL_KNOWN)) is not None
    custom = b.slice_of([b.device("d")], **selector([within("acme.io/rack", "r1")]))
    assert pool(custom, reach=ClaimReach(Requirements(), WELL_KNOWN)) is None


def test_selection_for_each_device(b: Any) -> None:
    devices = [
        b.device("here", nodeName="n1"),
        b.device("there", nodeName="n2"),
        b.device("everywhere", allNodes=True),
        b.device("zone", **selector([within(ZONE, "z1")])),
        b.device("nowhere"),
    ]
    assert names(pool(b.slice_of(devices, perDeviceNodeSelection=True))) == ["here", "everywhere", "zone"]


class TestGenerations:
    def test_the_new_generation_replaces_the_old(self, b: Any) -> None:
        old = b.slice_of([b.device("old")], node="n1", generation=1)
        new = b.slice_of([b.device("new")], node="n1", generation=2)
        for slices in ((old, new), (new, old)):
            assert names(pool(*slices)) == ["new"]

    def test_the_new_generations_own_completeness_decides(self, b: Any) -> None:
        old = b.slice_of([b.device("old")], node="n1", generation=1)
        new = b.slice_of([b.device("new")], node="n1", generation=2, count=2)
        found = pool(old, new)
        assert (found.state, found.candidates) == (UPDATING, ())
        assert found.detail == "generation 2 shows 1 of 2 slices"

    def test_the_new_generations_own_validity_decides(self, b: Any) -> None:
        old = b.slice_of([b.device("d"), b.device("d")], node="n1", generation=1)
        new = b.slice_of([b.device("d")], node="n1", generation=2)
        assert names(pool(old, new)) == ["d"]

    def test_a_pool_vanishes_when_its_newest_generation_is_out_of_reach(self, b: Any) -> None:
        here = b.slice_of([b.device("old")], node="n1", pool="p", generation=1)
        there = b.slice_of([b.device("new")], node="n2", pool="p", generation=2)
        assert pool(here, there, newest_only=True) is None
        assert names(pool(here, there)) == ["old"]


class TestCompleteness:
    @pytest.mark.parametrize(("published", "declared"), [(1, 0), (1, 2), (2, 1), (2, 3)])
    def test_too_few_too_many_or_none_declared(self, b: Any, published: int, declared: int) -> None:
        slices = [b.slice_of([b.device(f"d{index}")], node="n1", count=declared) for index in range(published)]
        assert pool(*slices).state == UPDATING

    def test_slices_out_of_reach_count(self, b: Any) -> None:
        here = b.slice_of([b.device("a")], node="n1", pool="p", count=2)
        there = b.slice_of([b.device("c")], node="n2", pool="p", count=2)
        assert names(pool(here, there)) == ["a"]
        assert pool(here).state == UPDATING

    def test_slices_that_disagree_leave_the_pool_incomplete_in_any_order(self, b: Any) -> None:
        slices = [b.slice_of([b.device(f"d{count}")], node="n1", count=count) for count in (1, 2)]
        for ordered in itertools.permutations(slices):
            assert pool(*ordered).state == UPDATING


class TestValidity:
    def test_a_device_listed_twice(self, b: Any) -> None:
        assert pool(b.slice_of([b.device("d"), b.device("d")], node="n1")).state == INVALID
        twice = [b.slice_of([b.device("d")], node="n1", count=2) for _ in range(2)]
        assert pool(*twice).detail == "device d is listed twice"

    def test_a_counter_set_listed_twice(self, b: Any) -> None:
        part = b.slice_of([consumer(b)], node="n1", count=2)
        assert pool(counter_slice(b, "cs", "cs"), part).state == INVALID
        three = b.slice_of([consumer(b)], node="n1", count=3)
        assert pool(counter_slice(b, "cs", count=3), counter_slice(b, "cs", count=3), three).state == INVALID

    @pytest.mark.parametrize("reference", [("other", "memory"), ("cs", "absent")])
    def test_a_consumer_of_something_missing(self, b: Any, reference: tuple[str, str]) -> None:
        part = b.slice_of([consumer(b, "part", *reference)], node="n1", count=2)
        assert pool(counter_slice(b, "cs"), part).state == INVALID

    def test_a_counter_of_another_set_does_not_help(self, b: Any) -> None:
        other = {"name": "b", "counters": {"compute": {"value": "8"}}}
        sets = b.slice_of([], node="n1", count=2, sharedCounters=[*counters("a")["sharedCounters"], other])
        part = b.slice_of([consumer(b, "part", "a", "compute")], node="n1", count=2)
        assert pool(sets, part).state == INVALID

    def test_consumers_out_of_reach_count_too(self, b: Any) -> None:
        here = b.slice_of([b.device("d")], node="n1", pool="p", count=2)
        there = b.slice_of([consumer(b)], node="n2", pool="p", count=2)
        assert pool(here, there).state == INVALID

    def test_consumers_without_any_set(self, b: Any) -> None:
        assert pool(b.slice_of([consumer(b)], node="n1")).state == INVALID


class TestCounterSlices:
    def test_they_complete_the_pool_in_any_order(self, b: Any) -> None:
        part = b.slice_of([consumer(b)], node="n1", count=2)
        for ordered in itertools.permutations((counter_slice(b, "cs"), part)):
            found = pool(*ordered)
            assert (found.state, names(found), found.budgets) == ("", ["part"], {("cs", "memory"): 8})

    def test_a_pool_of_them_alone_is_dropped(self, b: Any) -> None:
        assert pool(counter_slice(b, "cs", count=1)) is None

    def test_alone_in_a_pool_that_is_to_have_more_they_leave_it_incomplete(self, b: Any) -> None:
        found = pool(counter_slice(b, "cs", count=2))
        assert (found.state, names(found)) == (UPDATING, [])

    def test_those_of_another_node_are_out_of_reach(self, b: Any) -> None:
        sets = b.slice_of([], node="n2", count=2, sharedCounters=counters("cs")["sharedCounters"])
        assert pool(sets) is None

    def test_consumers_out_of_reach_are_kept_for_the_budget(self, b: Any) -> None:
        here = b.slice_of([consumer(b, "here")], node="n1", pool="p", count=3)
        there = b.slice_of([consumer(b, "there")], node="n2", pool="p", count=3)
        found = pool(counter_slice(b, "cs", count=3, pool="p"), here, there)
        assert names(found) == ["here"]
        assert set(found.consumers) == {"here", "there"}


def test_pools_that_wait_for_binding_conditions_come_last(b: Any) -> None:
    waiting = b.device("w", bindingConditions=["attached"], bindingFailureConditions=["failed"])
    slices = [b.slice_of([waiting], node="n1", pool="a"), b.slice_of([b.device("d")], node="n1", pool="z")]
    assert b.names_of(b.allocator(*slices).allocate(b.node(), [b.claim("c")])) == ["d"]


def test_unreadable_node_selectors_reach_nothing(b: Any) -> None:
    item = b.slice_of([b.device("d")], **selector([within(ZONE, "x", "y", operator="Gt")]))
    assert pool(item) is None
    assert pool(item, reach=ClaimReach(Requirements(), WELL_KNOWN)) is None


def test_slices_of_one_pool_in_two_drivers_are_two_pools(b: Any) -> None:
    slices = [
        b.slice_of([b.device("d")], node="n1", pool="p", driver=driver, generation=index + 1)
        for index, driver in enumerate(("a.io", "b.io"))
    ]
    found = b.allocator(*slices).allocate(b.node(), [b.claim("c", b.exactly(count=2))])
    assert b.devices_of(found) == ["r0=a.io/p/d", "r0=b.io/p/d"]


def test_gathering_leaves_its_input_alone(b: Any) -> None:
    slices = [counter_slice(b, "cs"), b.slice_of([consumer(b)], node="n1", count=2)]
    before = codec.encode(slices)
    pool(*slices)
    assert codec.encode(slices) == before
