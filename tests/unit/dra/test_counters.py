"""Partitionable devices (spec/dra-allocation.md 10: counters)."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.model.reason import Reason


def counter_set(name: str = "cs", **values: int) -> dict[str, Any]:
    return {"name": name, "counters": {counter: {"value": str(value)} for counter, value in values.items()}}


def part(b: Any, name: str, counter_set: str = "cs", **values: int) -> dict[str, Any]:
    counters = {counter: {"value": str(value)} for counter, value in values.items()}
    return b.device(name, consumesCounters=[{"counterSet": counter_set, "counters": counters}])


def published(b: Any, sets: list[Any], parts: list[Any], **fields: Any) -> list[Any]:
    fields = {"node": "n1", **fields}
    return [
        b.slice_of([], count=2, sharedCounters=sets, name="counters", **fields),
        b.slice_of(parts, count=2, name="parts", **fields),
    ]


def test_the_budget_is_respected(b: Any) -> None:
    parts = [part(b, f"p{index}", memory=3) for index in range(4)]
    allocator = b.allocator(*published(b, [counter_set(memory=8)], parts))
    assert b.names_of(allocator.allocate(b.node(), [b.claim("c", b.exactly(count=2))])) == ["p0", "p1"]
    assert isinstance(allocator.allocate(b.node(), [b.claim("c", b.exactly(count=3))]), Reason)


def test_the_search_finds_another_order_when_counters_run_out(b: Any) -> None:
    parts = [part(b, "big", memory=6), part(b, "s1", memory=4), part(b, "s2", memory=4)]
    allocator = b.allocator(*published(b, [counter_set(memory=8)], parts))
    assert b.names_of(allocator.allocate(b.node(), [b.claim("c", b.exactly(count=2))])) == ["s1", "s2"]


def test_devices_in_use_are_deducted_also_out_of_reach(b: Any) -> None:
    held = b.claim("old", status=b.allocated("gpu.nvidia.com/p/there", pods=("p",)))
    slices = [
        b.slice_of([], node="n1", pool="p", count=3, sharedCounters=[counter_set(memory=8)]),
        b.slice_of([part(b, "here", memory=4)], node="n1", pool="p", count=3),
        b.slice_of([part(b, "there", memory=6)], node="n2", pool="p", count=3),
    ]
    assert b.names_of(b.allocator(*slices).allocate(b.node(), [b.claim("c")])) == ["here"]
    assert isinstance(b.allocator(*slices, claims=[held]).allocate(b.node(), [b.claim("c")]), Reason)


def test_budgets_are_carried_across_pods(b: Any) -> None:
    parts = [part(b, f"p{index}", memory=4) for index in range(3)]
    allocator = b.allocator(*published(b, [counter_set(memory=8)], parts))
    for name in ("a", "b"):
        allocator.commit(allocator.allocate(b.node(), [b.claim(name)]))
    assert isinstance(allocator.allocate(b.node(), [b.claim("c")]), Reason)


def test_every_set_and_counter_is_enforced(b: Any) -> None:
    sets = [counter_set("a", memory=8, engines=1), counter_set("z", memory=8)]
    parts = [
        part(b, "a1", "a", memory=1, engines=1),
        part(b, "a2", "a", memory=1, engines=1),
        part(b, "z1", "z", memory=8),
    ]
    allocator = b.allocator(*published(b, sets, parts))
    assert b.names_of(allocator.allocate(b.node(), [b.claim("c", b.exactly(count=2))])) == ["a1", "z1"]
    assert isinstance(allocator.allocate(b.node(), [b.claim("c", b.exactly(count=3))]), Reason)


def test_a_device_that_consumes_nothing_fits_an_empty_budget(b: Any) -> None:
    parts = [part(b, "one", memory=1), part(b, "none", memory=0)]
    allocator = b.allocator(*published(b, [counter_set(memory=0)], parts))
    assert b.names_of(allocator.allocate(b.node(), [b.claim("c")])) == ["none"]


def test_counters_count_whole_units_rounded_up(b: Any) -> None:
    half = {"counterSet": "cs", "counters": {"memory": {"value": "500m"}}}
    parts = [b.device(f"p{index}", consumesCounters=[half]) for index in range(2)]
    allocator = b.allocator(*published(b, [counter_set(memory=1)], parts))
    assert isinstance(allocator.allocate(b.node(), [b.claim("c", b.exactly(count=2))]), Reason)


def test_a_rejected_candidate_leaves_no_counters_behind(b: Any) -> None:
    parts = [part(b, "p0", memory=8), part(b, "p1", memory=8)]
    parts[0]["attributes"]["k"] = {"string": "a"}
    allocator = b.allocator(*published(b, [counter_set(memory=8)], parts))
    item = b.claim("c", constraints=[{"distinctAttribute": "gpu.nvidia.com/k"}])
    assert b.names_of(allocator.allocate(b.node(), [item])) == ["p0"]
    item = b.claim("c", b.exactly("r0", "!has(device.attributes['gpu.nvidia.com'].k)"))
    assert b.names_of(allocator.allocate(b.node(), [item])) == ["p1"]


def test_all_of_disjoint_partitions_fits_and_of_overlapping_ones_does_not(b: Any) -> None:
    everything = b.claim("c", b.exactly(allocationMode="All"))
    slots = [counter_set(**{f"slot{index}": 1 for index in range(4)})]
    parts = [part(b, f"p{index}", **{f"slot{index}": 1}) for index in range(4)]
    assert len(b.names_of(b.allocator(*published(b, slots, parts)).allocate(b.node(), [everything]))) == 4
    parts.append(part(b, "whole", **{f"slot{index}": 1 for index in range(4)}))
    assert isinstance(b.allocator(*published(b, slots, parts)).allocate(b.node(), [everything]), Reason)


class TestOfTheRound:
    """Published pools without a node, so that several new nodes and plans draw from one budget."""

    def pool(self, b: Any, *amounts: int) -> list[Any]:
        parts = [part(b, f"p{amount}-{index}", memory=amount) for index, amount in enumerate(amounts)]
        return [
            b.slice_of([], count=2, pool="f", driver="acme.io", allNodes=True, sharedCounters=[counter_set(memory=8)]),
            b.slice_of(parts, count=2, pool="f", driver="acme.io", allNodes=True),
        ]

    def only(self, b: Any, name: str, prefix: str) -> Any:
        amount = {"p4": 4, "p2": 2, "p8": 8}[prefix]
        return b.claim(name, b.exactly("r0", f"device.attributes['acme.io'].amount == {amount}"))

    def tagged(self, b: Any, *amounts: int) -> list[Any]:
        parts = [
            {**part(b, f"p{amount}-{index}", memory=amount), "attributes": {"amount": {"int": amount}}}
            for index, amount in enumerate(amounts)
        ]
        sets = b.slice_of(
            [], count=2, pool="f", driver="acme.io", allNodes=True, sharedCounters=[counter_set(memory=8)]
        )
        return [sets, b.slice_of(parts, count=2, pool="f", driver="acme.io", allNodes=True)]

    def test_a_target_is_charged_the_most_of_its_plans(self, b: Any) -> None:
        allocator = b.allocator(*self.tagged(b, 4, 4))
        p1, p2 = b.plan("p1"), b.plan("p2")
        allocator.commit(allocator.allocate(b.new_node(p1, p2), [self.only(b, "a", "p4")]))
        found = allocator.allocate(b.new_node(p1, id="new-2"), [self.only(b, "c", "p4")])
        assert b.names_of(found, "p1") == ["p4-1"]

    def test_charges_of_different_targets_add_up(self, b: Any) -> None:
        allocator = b.allocator(*self.tagged(b, 4, 4, 4))
        for index in (1, 2):
            target = b.new_node(b.plan("p1"), id=f"new-{index}")
            allocator.commit(allocator.allocate(target, [self.only(b, f"c{index}", "p4")]))
        assert isinstance(allocator.allocate(b.new_node(b.plan("p1"), id="new-3"), [self.only(b, "c3", "p4")]), Reason)

    def test_release_refunds_when_the_last_plan_goes(self, b: Any) -> None:
        allocator = b.allocator(*self.tagged(b, 8, 4))
        p1, p2 = b.plan("p1"), b.plan("p2")
        allocator.commit(allocator.allocate(b.new_node(p1, p2), [self.only(b, "a", "p8")]))
        other = b.new_node(p1, id="new-2")
        allocator.release("new-1", ["p1"])
        assert isinstance(allocator.allocate(other, [self.only(b, "c", "p4")]), Reason)
        allocator.release("new-1", ["p2"])
        assert b.names_of(allocator.allocate(other, [self.only(b, "c", "p4")]), "p1") == ["p4-1"]


class TestPredicted:
    def plan(self, b: Any, name: str, budget: int, *amounts: int) -> Any:
        parts = [part(b, f"d{index}", memory=amount) for index, amount in enumerate(amounts)]
        return b.plan(name, b.template(parts, counters=[counter_set(memory=budget)] if budget else []))

    def test_budgets_belong_to_one_plan_of_one_target(self, b: Any) -> None:
        small, large = self.plan(b, "small", 4, 4, 4), self.plan(b, "large", 8, 4, 4)
        allocator = b.allocator()
        target = b.new_node(small, large)
        assert allocator.allocate(target, [b.claim("c", b.exactly(count=2))]).instance_types == ("large",)
        allocator.commit(allocator.allocate(target, [b.claim("a")]))
        assert allocator.allocate(target, [b.claim("c")]).instance_types == ("large",)
        assert allocator.allocate(b.new_node(small, large, id="new-2"), [b.claim("c")]).instance_types == (
            "small",
            "large",
        )

    def test_they_come_back_with_the_plan(self, b: Any) -> None:
        allocator = b.allocator()
        target = b.new_node(self.plan(b, "p", 4, 4, 4))
        allocator.commit(allocator.allocate(target, [b.claim("a")]))
        assert isinstance(allocator.allocate(target, [b.claim("c")]), Reason)
        allocator.release("new-1", ["p"])
        assert b.names_of(allocator.allocate(target, [b.claim("c")]), "p") == ["d0"]

    def test_without_a_budget_a_consumer_is_never_chosen(self, b: Any) -> None:
        refused = b.allocator().allocate(b.new_node(self.plan(b, "p", 0, 4)), [b.claim("c")], explain=True)
        assert "consumes counter memory of set cs, which no template declares" in b.tree(refused)

    def test_predicted_and_published_budgets_of_equal_names_stay_apart(self, b: Any) -> None:
        slices = [
            b.slice_of(devices, pool="predicted", driver="acme.io", count=2, allNodes=True, **more)
            for devices, more in (([], {"sharedCounters": [counter_set(memory=4)]}), ([part(b, "d0", memory=4)], {}))
        ]
        found = b.allocator(*slices).allocate(b.new_node(self.plan(b, "p", 4, 4)), [b.claim("c", b.exactly(count=2))])
        assert b.devices_of(found, "p") == ["r0=acme.io/predicted/d0", "r0=virtual/acme.io/predicted/d0"]


def test_a_shared_device_pays_its_counters_once(b: Any) -> None:
    both = {**part(b, "d0", memory=8), "allowMultipleAllocations": True}
    allocator = b.allocator(*published(b, [counter_set(memory=8)], [both]))
    for name in ("a", "b"):
        allocator.commit(allocator.allocate(b.node(), [b.claim(name)]))
    item = b.claim("c", b.exactly("x"), b.exactly("y"))
    assert b.names_of(allocator.allocate(b.node(), [item])) == ["d0", "d0"]


def test_the_reason_tells_what_is_left(b: Any) -> None:
    parts = [part(b, f"p{index}", memory=5) for index in range(2)]
    allocator = b.allocator(*published(b, [counter_set(memory=8)], parts))
    refused = allocator.allocate(b.node(), [b.claim("c", b.exactly(count=2))], explain=True)
    assert "counter cs/memory: 8 left; p0 needs 5, p1 needs 5" in b.tree(refused)
    allocator.commit(allocator.allocate(b.node(), [b.claim("a")]))
    refused = allocator.allocate(b.node(), [b.claim("c")], explain=True)
    assert "it needs 5 of counter memory in set cs, 3 left" in b.tree(refused)


@pytest.mark.parametrize("constraint", ["matchAttribute"])
def test_partitions_of_one_claim_come_from_one_card(b: Any, constraint: str) -> None:
    sets = [counter_set(f"gpu-{card}", **{f"slot{index}": 1 for index in range(4)}) for card in range(2)]
    parts = []
    for card in range(2):
        for start, size in ((0, 2), (2, 1), (3, 1)):
            if (card, size) != (0, 2):
                parts.append(
                    {
                        **part(b, f"g{card}-{start}", f"gpu-{card}", **{f"slot{start + i}": 1 for i in range(size)}),
                        "attributes": {"parentUUID": {"string": f"GPU-{card}"}, "size": {"int": size}},
                    }
                )
    allocator = b.allocator(*published(b, sets, parts))
    item = b.claim(
        "c",
        b.exactly("small", "device.attributes['gpu.nvidia.com'].size == 1"),
        b.exactly("half", "device.attributes['gpu.nvidia.com'].size == 2"),
        constraints=[{constraint: "gpu.nvidia.com/parentUUID"}],
    )
    assert b.names_of(allocator.allocate(b.node(), [item])) == ["g1-2", "g1-0"]
