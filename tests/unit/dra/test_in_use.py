"""What claims of the cluster hold (spec/dra-allocation.md 8; spec/user-cases.md U05, U06, U08)."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.dra import in_use
from karpenter_linode.model import codec
from karpenter_linode.model.resource import DeviceID, ResourceClaim

GPU = DeviceID("gpu.nvidia.com", "n1", "gpu-0")
TEXT = "gpu.nvidia.com/n1/gpu-0"


def reserved(item: Any, *consumers: dict[str, Any]) -> ResourceClaim:
    plain = codec.to_plain(item)
    plain["status"]["reservedFor"] = list(consumers)
    return codec.convert(plain, ResourceClaim)


def by_pod(uid: str) -> dict[str, Any]:
    return {"resource": "pods", "name": uid, "uid": uid}


@pytest.mark.parametrize(
    ("pods", "deleting", "held"),
    [
        (("p1",), (), True),
        (("p1",), ("p1",), False),
        (("p1", "p2"), ("p1",), True),
        (("p1", "p2"), ("p1", "p2"), False),
        ((), ("p1",), True),
    ],
)
def test_a_device_is_free_when_every_consumer_is_a_deleting_pod(
    b: Any, pods: tuple[str, ...], deleting: tuple[str, ...], *, held: bool
) -> None:
    claims = [b.claim("c", status=b.allocated(TEXT, pods=pods))]
    assert (GPU in in_use(claims, frozenset(deleting))) is held


@pytest.mark.parametrize(
    "other",
    [
        {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "g"},
        {"apiGroup": "example.com", "resource": "pods", "name": "g", "uid": "p1"},
    ],
)
def test_a_consumer_that_is_no_pod_keeps_the_device(b: Any, other: dict[str, Any]) -> None:
    item = reserved(b.claim("c", status=b.allocated(TEXT)), by_pod("p1"), other)
    assert GPU in in_use([item], frozenset({"p1", "g"}))


def test_a_device_of_two_claims_is_free_when_both_are(b: Any) -> None:
    claims = [b.claim(name, status=b.allocated(TEXT, pods=(name,))) for name in ("a", "z")]
    assert GPU in in_use(claims, frozenset({"a"}))
    assert GPU not in in_use(claims, frozenset({"a", "z"}))


def test_administrative_access_holds_nothing(b: Any) -> None:
    assert GPU not in in_use([b.claim("c", status=b.allocated(TEXT, pods=("p",), adminAccess=True))])


def test_claims_without_an_allocation_hold_nothing(b: Any) -> None:
    assert in_use([b.claim("c")]).exclusive == frozenset()


def test_shares_are_summed_without_those_of_deleting_pods(b: Any) -> None:
    claims = [
        b.claim(name, status=b.allocated(TEXT, pods=(name,), shareID=name, consumedCapacity=amounts))
        for name, amounts in (
            ("a", {"memory": "10Gi"}),
            ("c", {"memory": "5Gi", "lanes": "2"}),
            ("gone", {"memory": "20Gi"}),
        )
    ]
    found = in_use(claims, frozenset({"gone"}))
    assert found.shares == {GPU: {"memory": 15 * 2**30 * 10**9, "lanes": 2 * 10**9}}
    assert found.exclusive == frozenset()


def test_a_device_held_both_ways_is_exclusive(b: Any) -> None:
    claims = [
        b.claim("a", status=b.allocated(TEXT, pods=("a",))),
        b.claim("c", status=b.allocated(TEXT, pods=("c",), shareID="s", consumedCapacity={"memory": "1"})),
    ]
    found = in_use(claims)
    assert found.exclusive == {GPU}
    assert found.shares == {}
