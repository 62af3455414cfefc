"""Bodies in Kubernetes' protobuf form, of the few kinds that kubectl sends so: reviews, evictions, options of deletions.

The form is a magic number, an envelope (``runtime.Unknown``) with the object's type, and the object. Field numbers are
those of the ``generated.proto`` files of k8s.io/api and k8s.io/apimachinery.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.sim.face.errors import RequestError, bad_request

if TYPE_CHECKING:
    from collections.abc import Iterator

CONTENT_TYPE: Final = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_VARINT: Final = 10
_SIGN: Final = 1 << 63

# Of each message: field number -> (name, "text", "number", "flag", "texts" or the table of a message).
Table = dict[int, tuple[str, Any]]
_META: Final[Table] = {1: ("name", "text"), 3: ("namespace", "text"), 5: ("uid", "text"), 6: ("resourceVersion", "text")}
_PRECONDITIONS: Final[Table] = {1: ("uid", "text"), 2: ("resourceVersion", "text")}
_DELETE_OPTIONS: Final[Table] = {
    1: ("gracePeriodSeconds", "number"),
    2: ("preconditions", _PRECONDITIONS),
    3: ("orphanDependents", "flag"),
    4: ("propagationPolicy", "text"),
    5: ("dryRun", "texts"),
}
_RESOURCE: Final[Table] = {
    number: (name, "text")
    for number, name in enumerate(("namespace", "verb", "group", "version", "resource", "subresource", "name"), 1)
}
_ACCESS: Final[Table] = {
    1: ("resourceAttributes", _RESOURCE),
    2: ("nonResourceAttributes", {1: ("path", "text"), 2: ("verb", "text")}),
}
_KINDS: Final[dict[str, Table]] = {
    "DeleteOptions": _DELETE_OPTIONS,
    "Eviction": {1: ("metadata", _META), 2: ("deleteOptions", _DELETE_OPTIONS)},
    "SelfSubjectReview": {1: ("metadata", _META)},
    "SelfSubjectAccessReview": {1: ("metadata", _META), 2: ("spec", _ACCESS)},
    "SelfSubjectRulesReview": {1: ("metadata", _META), 2: ("spec", {1: ("namespace", "text")})},
}
_UNKNOWN: Final[Table] = {1: ("type", {1: ("apiVersion", "text"), 2: ("kind", "text")}), 2: ("raw", "bytes")}


def parse_protobuf(body: bytes) -> dict[str, Any]:
    """Plain data of a body.

    Raises:
        RequestError: malformed (400), or of a kind that is taken as JSON alone (415).
    """
    if not body.startswith(_MAGIC):
        raise bad_request("the body is not protobuf as Kubernetes writes it: its first bytes are others")
    envelope = _message(body[len(_MAGIC) :], _UNKNOWN)
    named = envelope.get("type", {})
    table = _KINDS.get(named.get("kind", ""))
    if table is None:
        raise RequestError(
            415,
            f"objects of kind {named.get('kind', '')!r} are not taken as protobuf here - accepted media types include: "
            "application/json, application/yaml",
        )
    return {**named, **_message(envelope.get("raw", b""), table)}


def _message(data: bytes, table: Table) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for number, value in _fields(data):
        name, kind = table.get(number, ("", ""))
        if not name:
            continue
        if isinstance(kind, dict):
            result[name] = _message(_as_bytes(value, name), kind)
        elif kind == "number":
            found = _as_number(value, name)
            result[name] = found - 2 * _SIGN if found >= _SIGN else found
        elif kind == "flag":
            result[name] = bool(_as_number(value, name))
        elif kind == "bytes":
            result[name] = _as_bytes(value, name)
        else:
            text = _as_bytes(value, name).decode("utf-8", "replace")
            result[name] = [*result.get(name, []), text] if kind == "texts" else text
    return result


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Numbers and values of a message's fields."""
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        wire = key & 7
        if wire == _VARINT:
            value, position = _varint(data, position)
            yield key >> 3, value
            continue
        if wire == _BYTES:
            size, position = _varint(data, position)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise bad_request(f"the body is not protobuf: wire type {wire} at byte {position}")
        if position + size > len(data):
            raise bad_request("the body is not protobuf: it ends within a field")
        yield key >> 3, data[position : position + size]
        position += size


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for index in range(_MAX_VARINT):
        if position + index >= len(data):
            break
        byte = data[position + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:  # noqa: PLR2004  # the bit that says that more bytes follow
            return value, position + index + 1
    raise bad_request(f"the body is not protobuf: no number at byte {position}")


def _as_bytes(value: int | bytes, name: str) -> bytes:
    if not isinstance(value, bytes):
        raise bad_request(f"the body is not protobuf of its kind: {name} is a number")
    return value


def _as_number(value: int | bytes, name: str) -> int:
    if not isinstance(value, int):
        raise bad_request(f"the body is not protobuf of its kind: {name} is no number")
    return value
