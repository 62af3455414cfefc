"""Reading and writing objects."""

import pytest

from karpenter_linode.model import codec, kinds
from karpenter_linode.model.core import Pod
from karpenter_linode.model.karpenter import NodePool
from karpenter_linode.model.meta import Condition
from karpenter_linode.model.quantity import Quantity
from karpenter_linode.model.resource import Device, ResourceClaim

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "gpu-job", "namespace": "default", "creationTimestamp": None},
    "spec": {
        "containers": [
            {"name": "app", "resources": {"requests": {"cpu": 1, "memory": "1024Mi"}, "claims": [{"name": "gpu"}]}}
        ],
        "unknownField": {"a": 1},
    },
    "status": {},
}


def test_unknown_fields_and_nulls_are_let_pass() -> None:
    pod = codec.convert(POD, Pod)
    assert pod.key == "default/gpu-job"
    assert pod.spec.containers[0].resources.requests == {"cpu": Quantity.of(1), "memory": Quantity.parse("1Gi")}


def test_manifests_carry_kind_and_canonical_quantities() -> None:
    manifest = kinds.to_manifest(kinds.from_manifest(POD))
    assert (manifest["apiVersion"], manifest["kind"]) == ("v1", "Pod")
    assert manifest["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("spec", "place"),
    [
        ({"containers": [{"resources": {"requests": {"cpu": "1x"}}}]}, r"'1x' is not a quantity.*containers\[0\]"),
        (
            {"containers": [{"resources": {"requests": {"cpu": [1]}}}]},
            r"quantity expected, found list.*containers\[0\]",
        ),
        ({"tolerations": [{"key": 5}]}, r"Expected `str`, got `int`.*tolerations\[0\].key"),
    ],
)
def test_a_wrong_field_is_named_with_its_path(spec: dict[str, object], place: str) -> None:
    with pytest.raises(codec.DecodeError, match=place):
        codec.convert({"spec": spec}, Pod)


def test_an_unknown_kind_is_named() -> None:
    with pytest.raises(codec.DecodeError, match="unknown kind 'Pot' in apiVersion 'v1'"):
        kinds.from_manifest({"apiVersion": "v1", "kind": "Pot"})


def test_attribute_members_keep_the_names_of_the_api() -> None:
    device = codec.convert({"name": "gpu-0", "attributes": {"index": {"int": 3}, "ok": {"bool": False}}}, Device)
    assert (device.attributes["index"].int_, device.attributes["ok"].bool_) == (3, False)
    assert codec.to_plain(device)["attributes"] == {"index": {"int": 3}, "ok": {"bool": False}}


def test_a_condition_always_writes_its_status() -> None:
    assert codec.to_plain(Condition(type="Launched", status="Unknown"))["status"] == "Unknown"


def test_consumed_capacity_tells_absent_from_empty() -> None:
    result = {"request": "r", "driver": "d", "pool": "p", "device": "x"}
    claim = codec.convert(
        {"status": {"allocation": {"devices": {"results": [result, {**result, "consumedCapacity": {}}]}}}},
        ResourceClaim,
    )
    written = codec.to_plain(claim)["status"]["allocation"]["devices"]["results"]
    assert ["consumedCapacity" in row for row in written] == [False, True]


def test_a_pool_gets_the_defaults_of_its_crd() -> None:
    pool = codec.convert({"spec": {}}, NodePool)
    assert (pool.spec.disruption.consolidate_after, pool.spec.disruption.budgets[0].nodes) == ("0s", "10%")


def test_every_kind_is_found_by_its_names() -> None:
    for kind in kinds.KINDS:
        assert kinds.find_kind(kind.API_VERSION, kind.KIND) is kind
        assert kind.PLURAL.isalpha()
        assert kind.PLURAL.islower()


@pytest.mark.parametrize("depth", [3_000, 100_000])
def test_nesting_that_exhausts_the_stack_is_a_decode_error(depth: int) -> None:
    with pytest.raises(codec.DecodeError, match="nested too deep"):
        codec.decode(b'{"unknown":' + b"[" * depth + b"]" * depth + b"}", NodePool)
    value: list[object] = []
    for _ in range(depth):
        value = [value]
    with pytest.raises(codec.DecodeError, match="nested too deep"):
        codec.convert({"unknown": value}, NodePool)
