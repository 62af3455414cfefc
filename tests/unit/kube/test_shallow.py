"""Objects that are nested deeper than a decoder goes: anybody who may create a ResourceClaim can write one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from karpenter_linode.kube.decoding import decode_event, decode_object, decode_page
from karpenter_linode.kube.errors import UnreadableError, status_of
from karpenter_linode.kube.shallow import LEVELS, shallow
from karpenter_linode.model.core import Pod
from karpenter_linode.model.resource import ResourceClaim
from karpenter_linode.ports import GoneError

if TYPE_CHECKING:
    from karpenter_linode.model.meta import KubeObject

DEPTHS = [LEVELS, 900, 1_100, 5_000, 200_000]


def claim(depth: int, name: str = "deep") -> bytes:
    """As the API server takes it: a list within a list within ..., in the parameters of a driver."""
    parameters = b'{"a":' + b"[" * depth + b"]" * depth + b"}"
    metadata = json.dumps({"name": name, "namespace": "tenant", "uid": f"uid-{name}", "resourceVersion": "7"}).encode()
    requests = b'[{"name":"gpu","exactly":{"deviceClassName":"gpu.example.com"}}]'
    config = b'[{"opaque":{"driver":"gpu.example.com","parameters":' + parameters + b"}}]"
    devices = b'{"requests":' + requests + b',"config":' + config + b"}"
    return b'{"metadata":' + metadata + b',"spec":{"devices":' + devices + b"}}"


def never(kind: type[KubeObject], key: str, problem: str) -> None:
    raise AssertionError(f"{kind.KIND} {key}: {problem}")


def device_class(found: Any) -> str:
    name: str = found.spec.devices.requests[0].exactly.device_class_name
    return name


@pytest.mark.parametrize("depth", DEPTHS)
def test_what_lies_too_deep_does_not_hide_the_rest_of_an_object(depth: int) -> None:
    assert device_class(decode_object(claim(depth), ResourceClaim, "get")) == "gpu.example.com"


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("type_", ["ADDED", "MODIFIED", "DELETED"])
def test_what_lies_too_deep_does_not_end_a_watch(depth: int, type_: str) -> None:
    line = b'{"type":"%b","object":%b}' % (type_.encode(), claim(depth))
    event = decode_event(line, ResourceClaim, "watch", never)
    assert (event.type, event.resource_version) == (type_, "7")
    assert device_class(event.object) == "gpu.example.com"


@pytest.mark.parametrize("depth", DEPTHS)
def test_what_lies_too_deep_does_not_hide_the_rest_of_a_list(depth: int) -> None:
    content = b'{"metadata":{"resourceVersion":"9"},"items":[%b,%b]}' % (claim(depth), claim(1, "flat"))
    page = decode_page(content, ResourceClaim, "list", never)
    assert [item.key for item in page.items or ()] == ["tenant/deep", "tenant/flat"]


def test_a_refusal_may_be_nested_too() -> None:
    deep = b'{"code":403,"message":"no","details":' + b"[" * 5_000 + b"]" * 5_000 + b"}"
    assert "no" in status_of(deep).message
    with pytest.raises(GoneError):
        decode_event(b'{"type":"ERROR","object":%b}' % deep.replace(b"403", b"410"), Pod, "watch", never)


def test_brackets_without_end_are_no_object() -> None:
    for content in (b"[" * 100_000, b'{"a":' * 100_000, b'{"metadata":{"name":"' + b'\\"[' * 100_000):
        with pytest.raises(UnreadableError):
            decode_object(content, ResourceClaim, "get")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (b'{"a":{"b":{"c":1}},"d":[1,[2,[3]]]}', b'{"a":{"b":null},"d":[1,null]}'),
        (b'{"a":"{[{[{[","b":"\\"[[[\\\\","c":[]}', b'{"a":"{[{[{[","b":"\\"[[[\\\\","c":[]}'),
        (b'{"a":[{"x":"]]"},{"y":"\\"]"}],"b":1}', b'{"a":[null,null],"b":1}'),
        (b'"text"', b'"text"'),
        (b"", b""),
    ],
)
def test_only_what_lies_deeper_is_cut_out(text: bytes, left: bytes) -> None:
    assert shallow(text, 2) == left


def test_the_end_of_an_object_that_can_no_longer_be_read_is_heard() -> None:
    told: list[str] = []
    line = (
        b'{"type":"DELETED","object":{"metadata":{"name":"p","namespace":"n","uid":"u","resourceVersion":"5"},'
        b'"spec":{"containers":7}}}'
    )
    event = decode_event(line, Pod, "watch", lambda kind, key, problem: told.append(f"{kind.KIND} {key}: {problem}"))
    assert event.object is not None
    assert (event.type, event.object.key, event.object.uid, event.resource_version) == ("DELETED", "n/p", "u", "5")
    assert told[0].startswith("Pod n/p: ")
