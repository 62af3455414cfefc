"""Consumable capacity (spec/dra-allocation.md 5.7 and 10: capacity)."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.dra.capacity import consumption
from karpenter_linode.model import codec
from karpenter_linode.model.quantity import Quantity
from karpenter_linode.model.reason import Reason
from karpenter_linode.model.resource import Device


def shared(b: Any, name: str = "d0", *, value: str = "40Gi", policy: dict[str, Any] | None = None, **more: str) -> Any:
    capacity: dict[str, Any] = {"memory": {"value": value}}
    if policy is not None:
        capacity["memory"]["requestPolicy"] = policy
    capacity.update({key: {"value": amount} for key, amount in more.items()})
    return b.device(name, capacity=capacity, allowMultipleAllocations=True)


def asking(b: Any, name: str = "c", count: int = 1, **requests: str) -> Any:
    return b.claim(name, b.exactly(count=count, capacity={"requests": requests}))


def on_node(b: Any, *devices: Any, **fields: Any) -> Any:
    return b.allocator(b.slice_of(list(devices), node="n1"), **fields)


RANGE = {"default": "4Gi", "validRange": {"min": "4Gi", "max": "50Gi", "step": "4Gi"}}
VALUES = {"default": "4Gi", "validValues": ["4Gi", "8Gi", "16Gi"]}


@pytest.mark.parametrize(
    ("policy", "asked", "taken"),
    [
        (VALUES, "5Gi", "8Gi"),
        (VALUES, "17Gi", None),
        (VALUES, "8Gi", "8Gi"),
        (VALUES, None, "4Gi"),
        (RANGE, "5Gi", "8Gi"),
        (RANGE, "1Gi", "4Gi"),
        (RANGE, "49Gi", None),
        ({"default": "1Gi", "validRange": {"min": "1Gi", "max": "8Gi"}}, "8Gi", "8Gi"),
        ({"default": "1Gi", "validRange": {"min": "1Gi", "max": "8Gi"}}, "9Gi", None),
        ({"default": "1Gi", "validRange": {"min": "2Gi"}}, None, "1Gi"),
        ({"default": "10Gi"}, None, "10Gi"),
        (None, "7Gi", "7Gi"),
        (None, None, "64Gi"),
        (None, "65Gi", None),
    ],
)
def test_amounts_follow_the_policy(b: Any, policy: Any, asked: str | None, taken: str | None) -> None:
    device = codec.convert(shared(b, value="64Gi", policy=policy), Device)
    requests = {} if asked is None else {"memory": Quantity.parse(asked).nano}
    found = consumption(device, requests)
    if taken is None:
        assert isinstance(found, str)
    else:
        assert found == {"memory": Quantity.parse(taken).nano}


def test_the_default_lets_four_pods_share(b: Any) -> None:
    allocator = on_node(b, shared(b, policy={"default": "10Gi"}))
    for index in range(4):
        allocator.commit(allocator.allocate(b.node(), [b.claim(f"c{index}")]))
    assert isinstance(allocator.allocate(b.node(), [b.claim("late")]), Reason)


def test_the_consumed_amounts_of_every_dimension_are_recorded(b: Any) -> None:
    found = on_node(b, shared(b, lanes="16")).allocate(b.node(), [asking(b, memory="10Gi")])
    [(_, grant)] = found.grants("")
    assert {name: str(amount) for name, amount in grant.consumed} == {"memory": "10Gi", "lanes": "16"}
    exclusive = on_node(b, b.device("d")).allocate(b.node(), [b.claim("c")])
    assert next(exclusive.grants(""))[1].consumed is None


def test_a_missing_dimension_rules_a_device_out_but_not_its_siblings(b: Any) -> None:
    allocator = on_node(b, shared(b, "plain"), shared(b, "laned", lanes="4"))
    assert b.names_of(allocator.allocate(b.node(), [asking(b, lanes="1")])) == ["laned"]


def test_every_dimension_must_fit(b: Any) -> None:
    allocator = on_node(b, shared(b, lanes="4"))
    assert isinstance(allocator.allocate(b.node(), [asking(b, memory="1Gi", lanes="5")]), Reason)


def test_zero_capacity_serves_nothing(b: Any) -> None:
    assert isinstance(on_node(b, shared(b, value="0")).allocate(b.node(), [asking(b, memory="1")]), Reason)


def test_a_device_without_dimensions_is_shared_without_limit(b: Any) -> None:
    allocator = on_node(b, b.device("d0", allowMultipleAllocations=True))
    for index in range(50):
        allocator.commit(allocator.allocate(b.node(), [b.claim(f"c{index}")]))


def test_one_device_serves_one_request_once_and_several_requests_together(b: Any) -> None:
    allocator = on_node(b, shared(b))
    assert isinstance(allocator.allocate(b.node(), [asking(b, count=2, memory="1Gi")]), Reason)
    item = b.claim("c", *(b.exactly(f"r{i}", capacity={"requests": {"memory": "20Gi"}}) for i in range(2)))
    assert b.names_of(allocator.allocate(b.node(), [item])) == ["d0", "d0"]
    item = b.claim("c", *(b.exactly(f"r{i}", capacity={"requests": {"memory": "20Gi"}}) for i in range(3)))
    assert isinstance(allocator.allocate(b.node(), [item]), Reason)


def test_shares_are_given_back_on_backtrack(b: Any) -> None:
    allocator = on_node(b, shared(b, "d0"), shared(b, "d1", value="30Gi"))
    item = b.claim(
        "c",
        b.exactly("small", capacity={"requests": {"memory": "30Gi"}}),
        b.exactly("large", capacity={"requests": {"memory": "40Gi"}}),
    )
    assert b.names_of(allocator.allocate(b.node(), [item])) == ["d1", "d0"]


def test_shares_in_use_and_of_the_round_and_of_the_call_are_counted(b: Any) -> None:
    held = b.claim(
        "old", status=b.allocated("gpu.nvidia.com/n1/d0", pods=("p",), shareID="s", consumedCapacity={"memory": "10Gi"})
    )
    allocator = on_node(b, shared(b), claims=[held])
    allocator.commit(allocator.allocate(b.node(), [asking(b, "a", memory="10Gi")]))
    assert isinstance(
        allocator.allocate(b.node(), [asking(b, "x", memory="11Gi"), asking(b, "y", memory="10Gi")]), Reason
    )
    found = allocator.allocate(b.node(), [asking(b, "x", memory="10Gi"), asking(b, "y", memory="10Gi")])
    assert b.names_of(found) == ["d0", "d0"]


def test_shares_of_deleting_pods_count_as_free(b: Any) -> None:
    held = b.claim(
        "old", status=b.allocated("gpu.nvidia.com/n1/d0", pods=("p",), shareID="s", consumedCapacity={"memory": "30Gi"})
    )
    assert isinstance(on_node(b, shared(b), claims=[held]).allocate(b.node(), [asking(b, memory="20Gi")]), Reason)
    allocator = on_node(b, shared(b), claims=[held], deleting_pod_uids=frozenset({"p"}))
    assert b.names_of(allocator.allocate(b.node(), [asking(b, memory="20Gi")])) == ["d0"]


def test_a_device_with_a_live_share_is_not_given_away_exclusively(b: Any) -> None:
    held = b.claim(
        "old", status=b.allocated("gpu.nvidia.com/n1/d0", pods=("p",), shareID="s", consumedCapacity={"memory": "1Gi"})
    )
    assert isinstance(on_node(b, b.device("d0"), claims=[held]).allocate(b.node(), [b.claim("c")]), Reason)


def test_exclusive_devices_must_have_the_capacity_asked(b: Any) -> None:
    small, large = (
        b.device(name, capacity={"memory": {"value": value}}) for name, value in (("s", "8Gi"), ("l", "80Gi"))
    )
    allocator = on_node(b, small, large)
    assert b.names_of(allocator.allocate(b.node(), [asking(b, memory="40Gi")])) == ["l"]


def test_all_leaves_out_devices_that_can_never_serve_the_capacity(b: Any) -> None:
    allocator = on_node(b, shared(b, "small", value="4Gi"), shared(b, "large"))
    item = b.claim("c", b.exactly(allocationMode="All", capacity={"requests": {"memory": "20Gi"}}))
    assert b.names_of(allocator.allocate(b.node(), [item])) == ["large"]


def test_predicted_shares_belong_to_one_plan_of_one_target(b: Any) -> None:
    p1, p2 = (b.plan(name, b.template([shared(b)])) for name in ("p1", "p2"))
    allocator = b.allocator()
    allocator.commit(allocator.allocate(b.new_node(p1), [asking(b, "a", memory="30Gi")]))
    assert allocator.allocate(b.new_node(p1, p2), [asking(b, memory="20Gi")]).instance_types == ("p2",)
    assert allocator.allocate(b.new_node(p1, p2, id="new-2"), [asking(b, memory="20Gi")]).instance_types == ("p1", "p2")


def test_a_target_is_charged_the_most_of_its_plans_and_refunded(b: Any) -> None:
    fabric = b.slice_of([shared(b)], driver="acme.io", pool="f", allNodes=True)
    p1, p2 = b.plan("p1"), b.plan("p2")
    allocator = b.allocator(fabric)
    allocator.commit(allocator.allocate(b.new_node(p1, p2), [asking(b, "a", memory="30Gi")]))
    other = b.new_node(p1, id="new-2")
    assert b.names_of(allocator.allocate(other, [asking(b, memory="10Gi")]), "p1") == ["d0"]
    assert isinstance(allocator.allocate(other, [asking(b, memory="20Gi")]), Reason)
    allocator.release("new-1", ["p1"])
    assert isinstance(allocator.allocate(other, [asking(b, memory="20Gi")]), Reason)
    allocator.release("new-1", ["p2"])
    assert b.names_of(allocator.allocate(other, [asking(b, memory="20Gi")]), "p1") == ["d0"]


def test_the_reason_tells_what_is_left(b: Any) -> None:
    allocator = on_node(b, shared(b))
    allocator.commit(allocator.allocate(b.node(), [asking(b, "a", memory="30Gi")]))
    refused = allocator.allocate(b.node(), [asking(b, memory="20Gi")], explain=True)
    assert "memory: 20Gi asked, 10Gi of 40Gi left" in b.tree(refused)
