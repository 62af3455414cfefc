"""Prioritized alternatives (spec/dra-allocation.md 10: firstAvailable)."""

from __future__ import annotations

from typing import Any

from karpenter_linode.model.reason import Reason

KIND = "device.attributes['gpu.nvidia.com'].kind"


def of_kind(b: Any, *kinds: str) -> list[Any]:
    return [b.device(f"{kind}-{index}", driver_attributes={"kind": kind}) for index, kind in enumerate(kinds)]


def wants(b: Any, kind: str, **fields: Any) -> dict[str, Any]:
    return b.item(f"{KIND} == '{kind}'", **fields)


def allocate(b: Any, kinds: list[str], *claims: Any) -> Any:
    return b.allocator(b.slice_of(of_kind(b, *kinds), node="n1")).allocate(b.node(), list(claims), explain=True)


def test_the_first_that_can_be_served_wins_and_its_name_is_recorded(b: Any) -> None:
    request = b.first_available("gpu", big=wants(b, "big"), small=wants(b, "small"))
    assert b.devices_of(allocate(b, ["small", "big"], b.claim("c", request))) == ["gpu/big=gpu.nvidia.com/n1/big-1"]
    assert b.devices_of(allocate(b, ["small"], b.claim("c", request))) == ["gpu/small=gpu.nvidia.com/n1/small-0"]


def test_none_fails(b: Any) -> None:
    refused = allocate(b, ["other"], b.claim("c", b.first_available("gpu", a=wants(b, "a"), z=wants(b, "z"))))
    assert isinstance(refused, Reason)
    assert "request gpu/a" in b.tree(refused)
    assert "request gpu/z" in b.tree(refused)


def test_a_later_claims_shortage_unwinds_an_earlier_preference(b: Any) -> None:
    flexible = b.claim("a", b.first_available("gpu", big=wants(b, "big"), small=wants(b, "small")))
    strict = b.claim("z", b.exactly("gpu", f"{KIND} == 'big'"))
    assert b.names_of(allocate(b, ["big", "small"], flexible, strict)) == ["small-1", "big-0"]


def test_every_instance_type_chooses_for_itself(b: Any) -> None:
    item = b.claim("c", b.first_available("gpu", two=b.item(count=2), one=b.item(count=1)))
    one, two = b.gpu_plan(), b.gpu_plan("g2-gpu-rtx4000a2-s", 2)
    found = b.allocator().allocate(b.new_node(one, two), [item])
    assert [grant.request for _, grant in found.grants(one.name)] == ["gpu/one"]
    assert [grant.request for _, grant in found.grants(two.name)] == ["gpu/two"] * 2


def test_all_may_fall_back_to_a_count(b: Any) -> None:
    request = b.first_available("gpu", everything=b.item(allocationMode="All"), one=b.item())
    held = b.claim("old", status=b.allocated("gpu.nvidia.com/n1/a-0", pods=("p",)))
    allocator = b.allocator(b.slice_of(of_kind(b, "a", "a"), node="n1"), claims=[held])
    assert b.devices_of(allocator.allocate(b.node(), [b.claim("c", request)])) == ["gpu/one=gpu.nvidia.com/n1/a-1"]


def test_all_alternatives_record_their_name_on_every_device(b: Any) -> None:
    request = b.first_available("gpu", everything=b.item(allocationMode="All"))
    found = allocate(b, ["a", "a"], b.claim("c", request))
    assert [grant.request for _, grant in found.grants("")] == ["gpu/everything"] * 2


def test_a_smaller_alternative_keeps_within_the_limit(b: Any) -> None:
    request = b.first_available("many", huge=b.item(count=33), one=b.item())
    assert len(b.names_of(allocate(b, ["a"] * 40, b.claim("c", request)))) == 1
    both = b.claim(
        "c", b.exactly("base", count=20), b.first_available("rest", big=b.item(count=20), few=b.item(count=12))
    )
    found = allocate(b, ["a"] * 40, both)
    assert [grant.request for _, grant in found.grants("")].count("rest/few") == 12


def test_impossible_even_with_the_smallest_is_refused_up_front(b: Any) -> None:
    item = b.claim("c", b.first_available("x", a=b.item(count=33), z=b.item(count=40)))
    assert "requests 33 devices in total" in b.tree(allocate(b, ["a"] * 40, item))


def test_the_state_is_restored_between_alternatives(b: Any) -> None:
    request = b.first_available("x", two=wants(b, "a", count=2), one=wants(b, "a"))
    item = b.claim(
        "c", request, b.exactly("y", f"{KIND} == 'a'"), constraints=[{"distinctAttribute": "gpu.nvidia.com/id"}]
    )
    devices = of_kind(b, "a", "a")
    for index, device in enumerate(devices):
        device["attributes"]["id"] = {"int": index}
    found = b.allocator(b.slice_of(devices, node="n1")).allocate(b.node(), [item])
    assert b.names_of(found) == ["a-0", "a-1"]


def test_mixed_with_plain_requests_and_other_classes(b: Any) -> None:
    net = b.device_class("net", "device.driver == 'net.io'")
    gpu = b.device_class("gpu", "device.driver == 'gpu.nvidia.com'")
    slices = [
        b.slice_of([b.device("n")], node="n1", pool="net", driver="net.io"),
        b.slice_of(of_kind(b, "a"), node="n1"),
    ]
    item = b.claim("c", b.first_available("x", gone=b.item("false"), net=b.item(device_class="net")), b.exactly("y"))
    found = b.allocator(*slices, classes=(net, gpu)).allocate(b.node(), [item])
    assert b.devices_of(found) == ["x/net=net.io/net/n", "y=gpu.nvidia.com/n1/a-0"]


def test_together_with_consumed_capacity(b: Any) -> None:
    shared = b.device("d", capacity={"memory": {"value": "8Gi"}}, allowMultipleAllocations=True)
    request = b.first_available(
        "x",
        much=b.item(capacity={"requests": {"memory": "9Gi"}}),
        some=b.item(capacity={"requests": {"memory": "3Gi"}}),
    )
    [(_, grant)] = b.allocator(b.slice_of([shared], node="n1")).allocate(b.node(), [b.claim("c", request)]).grants("")
    assert grant.request == "x/some"
    assert str(grant.consumed[0][1]) == "3Gi"
