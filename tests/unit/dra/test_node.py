"""Allocation on one node as kube-scheduler does it: results, node selectors, errors, bounds."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.dra import AllocationError, Features, InUse, StepLimitError, allocate_on_node, in_use
from karpenter_linode.model import codec
from karpenter_linode.model.core import Node
from karpenter_linode.model.resource import DeviceID, ResourceClaim

NODE = codec.convert({"metadata": {"name": "n1", "labels": {"topology.kubernetes.io/zone": "z1"}}}, Node)


def allocate(b: Any, slices: list[Any], *claims: Any, **fields: Any) -> Any:
    return allocate_on_node(NODE, slices, [b.device_class()], claims, fields.pop("in_use", InUse()), **fields)


def plain(result: Any) -> Any:
    return codec.to_plain(result)


def test_the_result_of_a_node_local_device(b: Any) -> None:
    [result] = allocate(b, [b.slice_of([b.device("gpu-0")], node="n1")], b.claim("c", b.exactly("gpu")))
    assert plain(result) == {
        "devices": {"results": [{"request": "gpu", "driver": "gpu.nvidia.com", "pool": "n1", "device": "gpu-0"}]},
        "nodeSelector": {
            "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]
        },
    }


def test_devices_for_all_nodes_need_no_selector(b: Any) -> None:
    [result] = allocate(b, [b.slice_of([b.device("d")], allNodes=True)], b.claim("c"))
    assert result.node_selector is None


def test_selectors_of_slices_are_joined(b: Any) -> None:
    def where(key: str, operator: str, *values: str) -> dict[str, Any]:
        expression = {"key": key, "operator": operator, "values": list(values)}
        return {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}

    slices = [
        b.slice_of([b.device("d")], pool="a", **where("topology.kubernetes.io/zone", "In", "z1")),
        b.slice_of([b.device("d")], pool="b", **where("absent", "DoesNotExist")),
        b.slice_of([b.device("d")], pool="c", allNodes=True),
    ]
    [result] = allocate(b, slices, b.claim("c", b.exactly(count=3)))
    [term] = result.node_selector.node_selector_terms
    assert [item.key for item in term.match_expressions] == ["topology.kubernetes.io/zone", "absent"]


def test_a_local_device_settles_it_for_slices_that_come_later_only(b: Any) -> None:
    expression = {"key": "absent", "operator": "DoesNotExist"}
    terms = {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [expression]}] * 2}}
    both = b.claim("c", b.exactly(count=2))
    with pytest.raises(AllocationError, match="2 terms, exactly one is supported"):
        allocate(b, [b.slice_of([b.device("d")], pool="a", **terms), b.slice_of([b.device("d")], node="n1")], both)
    [result] = allocate(
        b, [b.slice_of([b.device("d")], node="n1"), b.slice_of([b.device("d")], pool="z", **terms)], both
    )
    assert result.node_selector.node_selector_terms[0].match_fields[0].values == ("n1",)


def test_binds_to_node_makes_a_result_local(b: Any) -> None:
    [result] = allocate(b, [b.slice_of([b.device("d", bindsToNode=True)], allNodes=True)], b.claim("c"))
    assert result.node_selector.node_selector_terms[0].match_fields[0].values == ("n1",)


def test_all_is_node_bound_while_another_claims_network_device_is_not(b: Any) -> None:
    slices = [
        b.slice_of([b.device("gpu-0"), b.device("gpu-1")], node="n1"),
        b.slice_of([b.device("channel-0")], pool="net", driver="net.io", allNodes=True),
    ]
    classes = [
        b.device_class("gpu", "device.driver == 'gpu.nvidia.com'"),
        b.device_class("net", "device.driver == 'net.io'"),
    ]
    claims = [b.claim("g", b.exactly(allocationMode="All")), b.claim("n", b.exactly(device_class="net"))]
    gpu, net = allocate_on_node(NODE, slices, classes, claims, InUse()) or ()
    assert [item.device for item in gpu.devices.results] == ["gpu-0", "gpu-1"]
    assert [item.device for item in net.devices.results] == ["channel-0"]
    assert gpu.node_selector is not None
    assert net.node_selector is None


def test_administrative_access_takes_devices_in_use_once_per_claim(b: Any) -> None:
    slices = [b.slice_of([b.device("gpu-0"), b.device("gpu-1")], node="n1")]
    held = InUse(frozenset({DeviceID("gpu.nvidia.com", "n1", f"gpu-{index}") for index in range(2)}))
    item = b.claim("c", b.exactly("a", adminAccess=True), b.exactly("z", adminAccess=True))
    [result] = allocate(b, slices, item, in_use=held)
    assert [(entry.request, entry.device, entry.admin_access) for entry in result.devices.results] == [
        ("a", "gpu-0", True),
        ("z", "gpu-1", True),
    ]
    assert allocate(b, [b.slice_of([b.device("gpu-0")], node="n1")], item, in_use=held) is None


def test_results_are_held_by_the_next_claims(b: Any) -> None:
    slices = [b.slice_of([b.device("gpu-0"), b.device("gpu-1")], node="n1")]
    first = b.claim("a")
    [result] = allocate(b, slices, first)
    bound = codec.convert({**plain(first), "status": {"allocation": plain(result)}}, ResourceClaim)
    [second] = allocate(b, slices, b.claim("z"), in_use=in_use([bound]))
    assert second.devices.results[0].device == "gpu-1"


def test_shares_carry_what_they_consume(b: Any) -> None:
    shared = b.device("d", capacity={"memory": {"value": "8Gi"}}, allowMultipleAllocations=True)
    item = b.claim("c", b.exactly(capacity={"requests": {"memory": "3Gi"}}))
    [result] = allocate(b, [b.slice_of([shared], node="n1")], item)
    assert plain(result)["devices"]["results"][0]["consumedCapacity"] == {"memory": "3Gi"}


def test_features_that_are_off(b: Any) -> None:
    tainted = b.device("d", taints=[{"key": "k", "effect": "NoSchedule"}])
    assert allocate(b, [b.slice_of([tainted], node="n1")], b.claim("c")) is None
    assert allocate(b, [b.slice_of([tainted], node="n1")], b.claim("c"), features=Features()) is not None
    distinct = b.claim("c", constraints=[{"distinctAttribute": "a.io/k"}])
    with pytest.raises(AllocationError, match="claim ns/c, constraint #0: unsupported constraint"):
        allocate(b, [b.slice_of([tainted], node="n1")], distinct, features=Features())


def test_an_undefaulted_mode_is_an_error_here(b: Any) -> None:
    with pytest.raises(AllocationError, match="unsupported allocation mode ''"):
        allocate(b, [], b.claim("c", b.exactly(allocationMode="")))


def test_a_failing_selector_stops_only_when_its_device_is_reached(b: Any) -> None:
    picky = b.exactly("r0", "device.attributes['gpu.nvidia.com'].k == 1")
    good, odd = b.device("good", driver_attributes={"k": 1}), b.device("odd")
    assert allocate(b, [b.slice_of([good, odd], node="n1")], b.claim("c", picky)) is not None
    with pytest.raises(AllocationError, match=r"claim ns/c, request r0, selector 1 on device gpu\.nvidia\.com/n1/odd"):
        allocate(b, [b.slice_of([odd, good], node="n1")], b.claim("c", picky))


def test_an_invalid_pool_stops_a_request_that_other_pools_cannot_serve(b: Any) -> None:
    bad = b.slice_of([b.device("d"), b.device("d")], node="n1", pool="bad")
    good = b.slice_of([b.device("d")], node="n1", pool="good")
    assert allocate(b, [bad, good], b.claim("c")) is not None
    with pytest.raises(AllocationError, match=r"resource pool gpu\.nvidia\.com/bad is currently invalid"):
        allocate(b, [bad, good], b.claim("c", b.exactly(count=2)))


class TestBounds:
    """Hostile instances end, and end early where that can be seen."""

    def crowd(self, b: Any, devices: int, **attributes: Any) -> list[Any]:
        found = [
            b.device(f"d{index}", driver_attributes={"id": index, **{key: of(index) for key, of in attributes.items()}})
            for index in range(devices)
        ]
        return [b.slice_of(found, node="n1")]

    @pytest.mark.parametrize(
        ("devices", "requests", "count", "constraint"),
        [
            (16, 4, 5, None),
            (16, 4, 4, {"matchAttribute": "gpu.nvidia.com/rack"}),
            (16, 4, 1, {"matchAttribute": "gpu.nvidia.com/id"}),
            (32, 4, 8, {"matchAttribute": "gpu.nvidia.com/rack"}),
            (16, 2, 3, {"distinctAttribute": "gpu.nvidia.com/rack"}),
        ],
    )
    def test_no_answer_within_the_bound(self, b: Any, devices: int, requests: int, count: int, constraint: Any) -> None:
        slices = self.crowd(b, devices, rack=lambda index: index % 5)
        item = b.claim(
            "c",
            *(b.exactly(f"r{index}", count=count) for index in range(requests)),
            constraints=[constraint] if constraint else [],
        )
        assert allocate(b, slices, item, steps=50_000) is None

    def test_claims_that_want_the_same_few_devices_are_seen_through_at_once(self, b: Any) -> None:
        slices = self.crowd(b, 24, big=lambda index: index < 5)
        big = "device.attributes['gpu.nvidia.com'].big"
        claims = [b.claim(f"any{index}", b.exactly(count=3)) for index in range(4)]
        claims += [b.claim(f"big{index}", b.exactly("r0", big, count=3)) for index in range(2)]
        assert allocate(b, slices, *claims, steps=5_000) is None

    def test_many_claims_do_not_exhaust_the_stack(self, b: Any) -> None:
        claims = [b.claim(f"c{index}", b.exactly(count=32)) for index in range(60)]
        slices = [
            b.slice_of([b.device(f"d{index}") for index in range(128)], node="n1", pool=f"p{number}")
            for number in range(15)
        ]
        found = allocate(b, slices, *claims)
        assert sum(len(result.devices.results) for result in found) == 60 * 32

    def test_the_bound_ends_a_search_with_an_error(self, b: Any) -> None:
        slices = self.crowd(b, 14, j=lambda index: index % 7)
        item = b.claim("c", b.exactly(count=8), constraints=[{"distinctAttribute": "gpu.nvidia.com/j"}])
        with pytest.raises(StepLimitError, match="gave up after 30 tried devices"):
            allocate(b, slices, item, steps=30)

    def test_a_huge_count_is_refused_at_once(self, b: Any) -> None:
        with pytest.raises(AllocationError, match="exceeds the claim limit of 32"):
            allocate(b, self.crowd(b, 2), b.claim("c", b.exactly(count=2**62)))
