"""Allocation basics and the state of a round (spec/dra-allocation.md 10: basics, state, topology, allocated claims)."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.dra import Allocation
from karpenter_linode.dra.search import Search
from karpenter_linode.model.reason import Reason
from karpenter_linode.model.requirement import one_of
from karpenter_linode.model.requirements import Requirements

ZONE = "topology.kubernetes.io/zone"


def zone(*zones: str) -> dict[str, Any]:
    expression = {"key": ZONE, "operator": "In", "values": list(zones)}
    return {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def gpus(b: Any, count: int) -> list[dict[str, Any]]:
    return [b.device(f"gpu-{index}") for index in range(count)]


def test_no_claims_succeed_at_once(b: Any) -> None:
    found = b.allocator().allocate(b.new_node(b.plan("p1"), b.plan("p2")), [])
    assert found == Allocation("new-1", ("p1", "p2"))


def test_a_claim_without_requests_needs_no_devices(b: Any) -> None:
    empty = b.claim("c")
    empty = type(empty)(metadata=empty.metadata)
    found = b.allocator().allocate(b.new_node(b.plan("p1")), [empty])
    assert b.names_of(found, "p1") == []
    assert found.instance_types == ("p1",)


def test_claims_compete_within_one_call(b: Any) -> None:
    allocator = b.allocator(b.slice_of(gpus(b, 2), node="n1"))
    assert b.names_of(allocator.allocate(b.node(), [b.claim("a"), b.claim("b")])) == ["gpu-0", "gpu-1"]
    refused = allocator.allocate(b.node(), [b.claim("a"), b.claim("b"), b.claim("c")])
    assert isinstance(refused, Reason)


def test_claims_of_equal_name_in_two_namespaces_are_distinct(b: Any) -> None:
    allocator = b.allocator(b.slice_of(gpus(b, 2), node="n1"))
    first, second = b.claim("train", namespace="team-a"), b.claim("train", namespace="team-b")
    assert b.names_of(allocator.allocate(b.node(), [first, second])) == ["gpu-0", "gpu-1"]
    for item in (first, second):
        allocator.commit(allocator.allocate(b.node(), [item]))
    assert [placement.claim for placement in allocator.placements()] == ["team-a/train", "team-b/train"]


def test_a_claim_listed_twice_is_allocated_once(b: Any) -> None:
    allocator = b.allocator(b.slice_of(gpus(b, 1), node="n1"))
    item = b.claim("c")
    found = allocator.allocate(b.node(), [item, item])
    assert b.names_of(found) == ["gpu-0"]
    allocator.commit(found)


def test_allocated_devices_are_skipped_and_the_rest_is_usable(b: Any) -> None:
    taken = b.claim("old", status=b.allocated("gpu.nvidia.com/n1/gpu-0", pods=("p",)))
    allocator = b.allocator(b.slice_of(gpus(b, 2), node="n1"), claims=[taken])
    assert b.names_of(allocator.allocate(b.node(), [b.claim("c")])) == ["gpu-1"]


def test_backtracks_across_requests(b: Any) -> None:
    devices = [b.device("big", driver_attributes={"big": True}), b.device("small", driver_attributes={"big": False})]
    allocator = b.allocator(b.slice_of(devices, node="n1"))
    item = b.claim("c", b.exactly("any"), b.exactly("big", "device.attributes['gpu.nvidia.com'].big"))
    assert b.devices_of(allocator.allocate(b.node(), [item])) == [
        "any=gpu.nvidia.com/n1/small",
        "big=gpu.nvidia.com/n1/big",
    ]


def test_published_devices_come_before_predicted_ones_which_fill_up(b: Any) -> None:
    shared = b.slice_of([b.device("net-0")], driver="acme.io", pool="fabric", allNodes=True)
    types = (b.plan("p1", b.template([b.device("dev-0")])),)
    found = b.allocator(shared).allocate(b.new_node(*types), [b.claim("c", b.exactly(count=2))])
    assert b.devices_of(found, "p1") == ["r0=acme.io/fabric/net-0", "r0=virtual/acme.io/predicted/dev-0"]


def test_backtracks_from_published_to_predicted_devices(b: Any) -> None:
    shared = b.slice_of([b.device("net-0", driver_attributes={"k": "a"})], driver="acme.io", pool="f", allNodes=True)
    dev = [b.device(f"dev-{index}", driver_attributes={"k": "b"}) for index in range(2)]
    item = b.claim("c", b.exactly(count=2), constraints=[{"matchAttribute": "acme.io/k"}])
    found = b.allocator(shared).allocate(b.new_node(b.plan("p1", b.template(dev))), [item])
    assert b.names_of(found, "p1") == ["dev-0", "dev-1"]


def test_instance_types_are_judged_one_by_one(b: Any) -> None:
    one, two, none = b.gpu_plan(), b.gpu_plan("g2-gpu-rtx4000a2-s", 2), b.gpu_plan("g6-standard-2", 0)
    found = b.allocator().allocate(b.new_node(one, two, none), [b.claim("c", b.exactly(count=2))])
    assert isinstance(found, Allocation)
    assert found.instance_types == ("g2-gpu-rtx4000a2-s",)
    assert [reason.subject for reason in found.rejected] == ["plan g2-gpu-rtx4000a1-s", "plan g6-standard-2"]
    assert [reason.message for reason in found.rejected] == [
        "predicts 1 device, 2 asked",
        "predicts no device, 2 asked",
    ]


def test_equal_claims_are_searched_once_for_equal_devices(b: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[Search] = []
    run = Search.run
    monkeypatch.setattr(Search, "run", lambda self: searched.append(self) or run(self))
    allocator, plan = b.allocator(), b.gpu_plan("g2-gpu-rtx4000a2-s", 2)
    for number in (1, 2, 3):
        for claim in ("x", "y"):
            found = allocator.allocate(
                b.new_node(plan, id=f"new-{number}"), [b.claim(f"{claim}-{number}", b.exactly())]
            )
            assert found.claims[0].claim.endswith(f"{claim}-{number}")
            allocator.commit(found)
    assert len(searched) == 2  # the first device, then the second


def test_constraint_pins_do_not_leak_between_instance_types(b: Any) -> None:
    def of(value: str) -> Any:
        return b.template([b.device(f"d{index}", driver_attributes={"k": value}) for index in range(2)])

    item = b.claim("c", b.exactly(count=2), constraints=[{"matchAttribute": "acme.io/k"}])
    found = b.allocator().allocate(b.new_node(b.plan("p1", of("a")), b.plan("p2", of("b"))), [item])
    assert found.instance_types == ("p1", "p2")


def test_a_later_instance_type_may_succeed_after_a_failure(b: Any) -> None:
    types = (b.plan("p0"), b.plan("p1", b.template([b.device("d")])))
    assert b.allocator().allocate(b.new_node(*types), [b.claim("c")]).instance_types == ("p1",)


class TestAll:
    def everything(self, b: Any, **fields: Any) -> Any:
        return b.claim("c", b.exactly(allocationMode="All", **fields))

    def test_takes_every_match_published_and_predicted_per_instance_type(self, b: Any) -> None:
        shared = b.slice_of([b.device("net-0")], driver="acme.io", pool="f", allNodes=True)
        types = (b.plan("p1", b.template([b.device("d0")])), b.plan("p2", b.template(gpus(b, 2))))
        found = b.allocator(shared).allocate(b.new_node(*types), [self.everything(b)])
        assert b.names_of(found, "p1") == ["net-0", "d0"]
        assert b.names_of(found, "p2") == ["net-0", "gpu-0", "gpu-1"]

    def test_fails_without_a_match(self, b: Any) -> None:
        assert isinstance(b.allocator().allocate(b.new_node(b.plan("cpu")), [self.everything(b)]), Reason)

    def test_fails_when_one_of_them_is_taken(self, b: Any) -> None:
        taken = b.claim("old", status=b.allocated("gpu.nvidia.com/n1/gpu-0", pods=("p",)))
        allocator = b.allocator(b.slice_of(gpus(b, 2), node="n1"), claims=[taken])
        refused = allocator.allocate(b.node(), [self.everything(b)], explain=True)
        assert "not all of the 2 that match can be had" in b.tree(refused)
        assert "devices n1/gpu-0: in use" in b.tree(refused) or "device n1/gpu-0: in use" in b.tree(refused)

    def test_mixes_with_exact_counts(self, b: Any) -> None:
        devices = [b.device("a", driver_attributes={"k": 1}), b.device("x", driver_attributes={"k": 2})]
        item = b.claim(
            "c",
            b.exactly("one", "device.attributes['gpu.nvidia.com'].k == 1"),
            b.exactly("rest", "device.attributes['gpu.nvidia.com'].k == 2", allocationMode="All"),
        )
        found = b.allocator(b.slice_of(devices, node="n1")).allocate(b.node(), [item])
        assert b.names_of(found) == ["a", "x"]

    def test_aggregates_several_pools(self, b: Any) -> None:
        slices = [b.slice_of([b.device("d")], node="n1", pool=f"p{index}") for index in range(3)]
        assert len(b.names_of(b.allocator(*slices).allocate(b.node(), [self.everything(b)]))) == 3

    @pytest.mark.parametrize(
        ("broken", "text"),
        [
            ({"count": 2}, "currently being updated (generation 1 shows 1 of 2 slices)"),
            ({"devices": 2}, "currently invalid (device d is listed twice)"),
        ],
    )
    def test_an_unusable_pool_in_reach_is_an_error(self, b: Any, broken: dict[str, int], text: str) -> None:
        good = b.slice_of(gpus(b, 1), node="n1", pool="good")
        bad = b.slice_of(
            [b.device("d")] * broken.get("devices", 1), node="n1", pool="bad", count=broken.get("count", 1)
        )
        refused = b.allocator(good, bad).allocate(b.node(), [self.everything(b)], explain=True)
        assert text in b.tree(refused)

    def test_more_than_32_matches_fail(self, b: Any) -> None:
        allocator = b.allocator(b.slice_of(gpus(b, 33), node="n1"))
        refused = allocator.allocate(b.node(), [self.everything(b)], explain=True)
        assert "exceeds the claim limit of 32" in b.tree(refused)

    def test_an_instance_type_over_the_limit_is_left_out(self, b: Any) -> None:
        types = (b.plan("p33", b.template(gpus(b, 33))), b.plan("p2", b.template(gpus(b, 2))))
        found = b.allocator().allocate(b.new_node(*types), [self.everything(b)])
        assert found.instance_types == ("p2",)


@pytest.mark.parametrize(("counts", "fits"), [((32,), True), ((16, 16), True), ((33,), False), ((16, 17), False)])
def test_a_claim_holds_32_devices(b: Any, counts: tuple[int, ...], *, fits: bool) -> None:
    allocator = b.allocator(b.slice_of(gpus(b, 40), node="n1"))
    item = b.claim("c", *(b.exactly(f"r{index}", count=count) for index, count in enumerate(counts)))
    found = allocator.allocate(b.node(), [item], explain=True)
    assert isinstance(found, Allocation) is fits
    if not fits:
        assert f"requests {sum(counts)} devices in total, which exceeds the claim limit of 32" in b.tree(found)


class TestState:
    def test_nothing_is_reserved_without_commit(self, b: Any) -> None:
        allocator = b.allocator(b.slice_of(gpus(b, 1), node="n1"))
        for name in ("a", "b"):
            assert b.names_of(allocator.allocate(b.node(), [b.claim(name)])) == ["gpu-0"]

    def test_commit_reserves(self, b: Any) -> None:
        allocator = b.allocator(b.slice_of(gpus(b, 1), node="n1"))
        allocator.commit(allocator.allocate(b.node(), [b.claim("a")]))
        assert isinstance(allocator.allocate(b.node(), [b.claim("b")]), Reason)

    def test_published_devices_are_shared_by_the_instance_types_of_one_target_alone(self, b: Any) -> None:
        shared = b.slice_of([b.device("net-0")], driver="acme.io", pool="f", allNodes=True)
        p1, p2 = b.plan("p1"), b.plan("p2")
        allocator = b.allocator(shared)
        first = allocator.allocate(b.new_node(p1, p2), [b.claim("a")])
        assert first.instance_types == ("p1", "p2")
        allocator.commit(first)
        assert isinstance(allocator.allocate(b.new_node(p1, id="new-2"), [b.claim("b")]), Reason)
        assert isinstance(allocator.allocate(b.new_node(p1, p2), [b.claim("b")]), Reason)
        allocator.release("new-1", ["p1"])
        assert isinstance(allocator.allocate(b.new_node(p1, id="new-2"), [b.claim("b")]), Reason)
        assert allocator.allocate(b.new_node(p1, p2), [b.claim("b")]).instance_types == ("p1",)
        allocator.release("new-1", ["p2"])
        assert b.names_of(allocator.allocate(b.new_node(p1, id="new-2"), [b.claim("b")]), "p1") == ["net-0"]

    def test_predicted_devices_belong_to_one_instance_type_of_one_target(self, b: Any) -> None:
        p1, p2 = b.gpu_plan(), b.gpu_plan("g2-gpu-rtx4000a1-m")
        allocator = b.allocator()
        allocator.commit(allocator.allocate(b.new_node(p1), [b.claim("a")]))
        assert allocator.allocate(b.new_node(p1, p2), [b.claim("b")]).instance_types == (p2.name,)
        assert allocator.allocate(b.new_node(p1, id="new-2"), [b.claim("b")]).instance_types == (p1.name,)

    def test_release_of_unknown_instance_types_does_nothing(self, b: Any) -> None:
        allocator = b.allocator()
        allocator.commit(allocator.allocate(b.new_node(b.gpu_plan()), [b.claim("a")]))
        allocator.release("new-1", ["nope"])
        allocator.release("unknown", ["g2-gpu-rtx4000a1-s"])
        assert isinstance(allocator.allocate(b.new_node(b.gpu_plan()), [b.claim("b")]), Reason)

    def test_a_second_commit_of_a_claim_is_a_programming_error(self, b: Any) -> None:
        allocator = b.allocator(b.slice_of(gpus(b, 2), node="n1"))
        found = allocator.allocate(b.node(), [b.claim("a")])
        allocator.commit(found)
        with pytest.raises(AssertionError, match="attempted to commit claim which was already allocated"):
            allocator.commit(found)


class TestTopology:
    def test_zones_accumulate_and_narrow(self, b: Any) -> None:
        first = b.slice_of([b.device("a")], driver="acme.io", pool="a", **zone("z1", "z2"))
        second = b.slice_of([b.device("c")], driver="acme.io", pool="c", **zone("z2", "z3"))
        found = b.allocator(first, second).allocate(b.new_node(b.plan("p")), [b.claim("c", b.exactly(count=2))])
        assert found.requirements == Requirements([one_of(ZONE, "z2")])
        assert found.claims[0].total_requirements == Requirements([one_of(ZONE, "z2")])

    def test_incompatible_zones_are_refused_and_undone(self, b: Any) -> None:
        pools = {"a": "z1", "c": "z2", "d": "z2"}
        slices = [
            b.slice_of([b.device(name)], driver="acme.io", pool=name, **zone(place)) for name, place in pools.items()
        ]
        found = b.allocator(*slices).allocate(b.new_node(b.plan("p")), [b.claim("c", b.exactly(count=2))])
        assert b.names_of(found, "p") == ["c", "d"]
        assert found.requirements == Requirements([one_of(ZONE, "z2")])

    def test_an_earlier_instance_types_zone_prunes_later_ones(self, b: Any) -> None:
        slices = [
            b.slice_of([b.device("a")], driver="acme.io", pool="a", **zone("z1")),
            b.slice_of([b.device("c")], driver="acme.io", pool="c", **zone("z2")),
        ]
        allocator = b.allocator(*slices)
        item = b.claim("c", b.exactly("r0", "device.attributes['acme.io'].type == 'gpu'", count=2))
        p1 = b.plan("p1", b.template([b.device("t")]))
        p2 = b.plan("p2", b.template([b.device("t")]))
        found = allocator.allocate(b.new_node(p1, p2), [item])
        assert found.requirements == Requirements([one_of(ZONE, "z1")])
        assert found.instance_types == ("p1", "p2")

    def test_devices_without_topology_contribute_nothing(self, b: Any) -> None:
        found = b.allocator().allocate(b.new_node(b.gpu_plan()), [b.claim("c")])
        assert len(found.claims[0].contributed["g2-gpu-rtx4000a1-s"]) == 0

    def test_release_relaxes_what_a_claim_contributes(self, b: Any) -> None:
        shared = b.slice_of([b.device("a")], driver="acme.io", pool="a", **zone("z1"))
        allocator = b.allocator(shared)
        allocator.commit(allocator.allocate(b.new_node(b.plan("p1"), b.plan("p2")), [b.claim("c")]))
        allocator.release("new-1", ["p1"])
        assert allocator.placements()[0].total_requirements == Requirements([one_of(ZONE, "z1")])
        allocator.release("new-1", ["p2"])
        assert len(allocator.placements()[0].total_requirements) == 0


class TestAllocatedClaims:
    def selector(self, *zones: str) -> Any:
        return zone(*zones)["nodeSelector"]

    def test_without_a_selector_any_place_will_do(self, b: Any) -> None:
        item = b.claim("c", status=b.allocated("acme.io/f/net-0", pods=("p",)))
        assert b.allocator(claims=[item]).allocate(b.new_node(b.plan("p1")), [item]).instance_types == ("p1",)

    def test_a_selector_narrows_the_target(self, b: Any) -> None:
        item = b.claim("c", status=b.allocated("acme.io/f/net-0", pods=("p",), selector=self.selector("z1")))
        found = b.allocator(claims=[item]).allocate(b.new_node(b.plan("p1")), [item])
        assert found.requirements == Requirements([one_of(ZONE, "z1")])

    def test_an_incompatible_selector_is_refused_in_the_contracts_words(self, b: Any) -> None:
        item = b.claim("c", status=b.allocated("acme.io/f/net-0", pods=("p",), selector=self.selector("z1")))
        found = b.allocator(claims=[item]).allocate(b.new_node(b.plan("p1"), labels={ZONE: "z2"}), [item])
        assert found.message == "in-cluster allocation topology is incompatible with NodeClaim requirements"
        assert found.fact("ResourceClaim") == "ns/c"

    def test_two_claims_in_different_zones_cannot_meet(self, b: Any) -> None:
        items = [
            b.claim(
                f"c{index}", status=b.allocated(f"acme.io/f/n{index}", pods=("p",), selector=self.selector(f"z{index}"))
            )
            for index in range(2)
        ]
        assert isinstance(b.allocator(claims=items).allocate(b.new_node(b.plan("p1")), items), Reason)

    def test_a_claim_on_a_node_by_name_is_for_that_node_alone(self, b: Any) -> None:
        only = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}
        item = b.claim("c", status=b.allocated("gpu.nvidia.com/n1/gpu-0", pods=("p",), selector=only))
        allocator = b.allocator(claims=[item])
        assert isinstance(allocator.allocate(b.node("n1"), [item]), Allocation)
        assert isinstance(allocator.allocate(b.node("n2"), [item]), Reason)
        assert isinstance(allocator.allocate(b.new_node(b.gpu_plan()), [item]), Reason)

    def test_it_steers_a_following_claim(self, b: Any) -> None:
        slices = [
            b.slice_of([b.device("a")], driver="acme.io", pool="a", **zone("z1")),
            b.slice_of([b.device("c")], driver="acme.io", pool="c", **zone("z2")),
        ]
        old = b.claim("old", status=b.allocated("acme.io/f/n", pods=("p",), selector=self.selector("z2")))
        found = b.allocator(*slices, claims=[old]).allocate(b.new_node(b.plan("p")), [old, b.claim("new")])
        assert b.names_of(found, "p") == ["c"]
        assert found.requirements == Requirements([one_of(ZONE, "z2")])

    def test_a_claim_of_this_round_is_reused_on_the_same_target(self, b: Any) -> None:
        allocator = b.allocator()
        shared, target = b.claim("shared"), b.new_node(b.gpu_plan())
        allocator.commit(allocator.allocate(target, [shared]))
        again = allocator.allocate(target, [shared])
        assert again.instance_types == ("g2-gpu-rtx4000a1-s",)
        assert again.claims == ()

    def test_predicted_devices_bind_a_claim_to_its_target(self, b: Any) -> None:
        allocator = b.allocator()
        shared = b.claim("shared")
        allocator.commit(allocator.allocate(b.new_node(b.gpu_plan()), [shared]))
        refused = allocator.allocate(b.new_node(b.gpu_plan(), id="new-2"), [shared])
        assert refused.message == "claim is bound to a different in-flight NodeClaim"

    def test_node_local_devices_bind_a_claim_to_its_node(self, b: Any) -> None:
        slices = [b.slice_of(gpus(b, 1), node=name) for name in ("n1", "n2")]
        allocator = b.allocator(*slices)
        shared = b.claim("shared")
        allocator.commit(allocator.allocate(b.node("n1"), [shared]))
        assert isinstance(allocator.allocate(b.node("n2"), [shared]), Reason)
        assert isinstance(allocator.allocate(b.node("n1"), [shared]), Allocation)

    def test_devices_of_a_zone_are_reusable_from_another_target_in_it(self, b: Any) -> None:
        allocator = b.allocator(b.slice_of([b.device("a")], driver="acme.io", pool="a", **zone("z1")))
        shared = b.claim("shared")
        allocator.commit(allocator.allocate(b.new_node(b.plan("p")), [shared]))
        found = allocator.allocate(b.new_node(b.plan("p"), id="new-2"), [shared])
        assert found.requirements == Requirements([one_of(ZONE, "z1")])
        elsewhere = allocator.allocate(b.new_node(b.plan("p"), id="new-3", labels={ZONE: "z2"}), [shared])
        assert elsewhere.message == "in-memory allocation topology is incompatible with NodeClaim requirements"

    def test_a_shared_claim_allows_the_plans_it_was_given_devices_for(self, b: Any) -> None:
        allocator = b.allocator()
        shared, gpu, cpu = b.claim("shared"), b.gpu_plan(), b.plan("cpu")
        allocator.commit(allocator.allocate(b.new_node(gpu, cpu), [shared]))
        found = allocator.allocate(b.new_node(gpu, cpu), [shared])
        assert found.instance_types == (gpu.name,)


class TestDeletingPods:
    def test_a_claim_of_deleting_pods_alone_is_allocated_anew(self, b: Any) -> None:
        item = b.claim("c", status=b.allocated("gpu.nvidia.com/n1/gpu-0", pods=("p1", "p2")))
        allocator = b.allocator(
            b.slice_of(gpus(b, 1), node="n1"), claims=[item], deleting_pod_uids=frozenset({"p1", "p2"})
        )
        assert b.names_of(allocator.allocate(b.node(), [item])) == ["gpu-0"]

    @pytest.mark.parametrize("deleting", [frozenset(), frozenset({"p1"})])
    def test_a_live_consumer_keeps_it(self, b: Any, deleting: frozenset[str]) -> None:
        item = b.claim("c", status=b.allocated("gpu.nvidia.com/n1/gpu-0", pods=("p1", "p2")))
        allocator = b.allocator(b.slice_of(gpus(b, 1), node="n1"), claims=[item], deleting_pod_uids=deleting)
        assert allocator.allocate(b.node(), [item]).claims == ()
        assert isinstance(allocator.allocate(b.node(), [b.claim("new")]), Reason)

    def test_two_deleting_pods_that_share_a_claim_share_it_again(self, b: Any) -> None:
        item = b.claim("c", status=b.allocated("gpu.nvidia.com/n1/gpu-0", pods=("p1",)))
        allocator = b.allocator(b.slice_of(gpus(b, 1), node="n1"), claims=[item], deleting_pod_uids=frozenset({"p1"}))
        first = allocator.allocate(b.node(), [item])
        allocator.commit(first)
        second = allocator.allocate(b.node(), [item])
        assert second.claims == ()


class TestNodesInTransition:
    def owned(self, b: Any, node: str) -> Any:
        return b.slice_of(gpus(b, 2), node=node, owner=node)

    def test_slices_of_uninitialized_and_unknown_nodes_are_hidden(self, b: Any) -> None:
        for name in ("n1", "gone"):
            allocator = b.allocator(self.owned(b, name), initialized_nodes=frozenset({"n2"}))
            assert isinstance(allocator.allocate(b.node(name), [b.claim("c")]), Reason)

    def test_an_uninitialized_node_is_served_by_its_prediction(self, b: Any) -> None:
        allocator = b.allocator(self.owned(b, "n1"), initialized_nodes=frozenset())
        target = b.node("n1", {}, b.gpu_plan("g2-gpu-rtx4000a2-s", 2), initialized=False)
        found = allocator.allocate(target, [b.claim("c", b.exactly(count=2))])
        assert b.devices_of(found, "g2-gpu-rtx4000a2-s") == [
            "r0=virtual/gpu.nvidia.com/predicted/gpu-0",
            "r0=virtual/gpu.nvidia.com/predicted/gpu-1",
        ]
        assert isinstance(allocator.allocate(target, [b.claim("c", b.exactly(count=3))]), Reason)

    def test_devices_in_use_behind_hidden_slices_use_up_predicted_ones(self, b: Any) -> None:
        held = b.claim("old", status=b.allocated("gpu.nvidia.com/n1/gpu-1", pods=("p",)))
        allocator = b.allocator(self.owned(b, "n1"), initialized_nodes=frozenset(), claims=[held])
        target = b.node("n1", {}, b.gpu_plan("g2-gpu-rtx4000a2-s", 2), initialized=False)
        assert isinstance(allocator.allocate(target, [b.claim("c", b.exactly(count=2))]), Reason)
        allocator.commit(allocator.allocate(target, [b.claim("c")]))
        assert isinstance(allocator.allocate(target, [b.claim("d")]), Reason)

    def test_an_initialized_node_has_its_published_devices_alone(self, b: Any) -> None:
        allocator = b.allocator(initialized_nodes=frozenset({"n1"}))
        assert isinstance(allocator.allocate(b.node("n1", {}, b.gpu_plan()), [b.claim("c")]), Reason)

    def test_a_new_node_never_takes_devices_of_an_existing_one(self, b: Any) -> None:
        allocator = b.allocator(self.owned(b, "n1"))
        assert isinstance(allocator.allocate(b.new_node(b.plan("cpu")), [b.claim("c")]), Reason)


def test_refusals_are_forgotten_when_devices_come_back(b: Any) -> None:
    allocator = b.allocator()
    target = b.new_node(b.gpu_plan())
    allocator.commit(allocator.allocate(target, [b.claim("a")]))
    late = b.claim("late")
    assert isinstance(allocator.allocate(target, [late]), Reason)
    assert isinstance(allocator.allocate(target, [late]), Reason)
    allocator.release("new-1", ["g2-gpu-rtx4000a1-s"])
    assert isinstance(allocator.allocate(target, [late]), Allocation)


def test_a_release_on_a_joining_node_frees_its_predicted_devices(b: Any) -> None:
    plan = b.gpu_plan()
    allocator, target = b.allocator(), b.node("n9", {}, plan, initialized=False)
    allocator.commit(allocator.allocate(target, [b.claim("a")]))
    late = b.claim("late")
    assert isinstance(allocator.allocate(target, [late]), Reason)
    allocator.release(target.id, [plan.name])
    assert isinstance(allocator.allocate(target, [late]), Allocation)


def test_a_refusal_by_a_failing_selector_ends_when_the_device_is_taken(b: Any) -> None:
    devices = [b.device("odd"), b.device("good", driver_attributes={"k": 1})]
    allocator = b.allocator(b.slice_of(devices, node="n1"))
    picky = "device.attributes['gpu.nvidia.com'].k == 1"
    assert isinstance(allocator.allocate(b.node(), [b.claim("c", b.exactly("r0", picky))]), Reason)
    allocator.commit(allocator.allocate(b.node(), [b.claim("other")]))
    assert b.names_of(allocator.allocate(b.node(), [b.claim("c", b.exactly("r0", picky))])) == ["good"]
