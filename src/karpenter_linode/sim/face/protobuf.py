"""Bodies in Kubernetes' protobuf form, which typed clients prefer: kubectl's own ``create``, ``drain`` and ``auth``.

The form is a magic number, an envelope (``runtime.Unknown``) with the object's type, and the object. The numbers and
types of fields are in ``data/messages.json``, which ``scripts/kube_schemas.py`` writes. Answers are always JSON.
"""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.model.timestamps import rfc3339
from karpenter_linode.sim.face.errors import RequestError, bad_request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CONTENT_TYPE: Final = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_VARINT: Final = 10
_MAX_DEPTH: Final = 32
_SIGN: Final = 1 << 63
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TEXT_KIND: Final = 1

Value = int | bytes


@cache
def _messages() -> dict[str, dict[int, tuple[str, str, str]]]:
    """Of each message: field number -> (name, how often, kind)."""
    text = files("karpenter_linode.sim").joinpath("data/messages.json").read_text()
    return {
        message: {int(number): (name, *_split(kind)) for number, (name, kind) in fields.items()}
        for message, fields in json.loads(text).items()
    }


def _split(kind: str) -> tuple[str, str]:
    label, _, name = kind.partition(" ")
    return label, name


@cache
def _message_names() -> dict[tuple[str, str], str]:
    """Names of the messages that bodies may hold, by group (its first word) and kind."""
    return {(name.split(".")[-3], name.rpartition(".")[2]): name for name in _messages()}


def parse_protobuf(body: bytes) -> dict[str, Any]:
    """Plain data of a body.

    Raises:
        RequestError: malformed (400), or of a kind that is taken as JSON alone (415).
    """
    if not body.startswith(_MAGIC):
        raise bad_request("the body is not protobuf as Kubernetes writes it: its first bytes are others")
    envelope = dict(_fields(body[len(_MAGIC) :]))
    named = {number: _text(value) for number, value in _fields(_bytes(envelope.get(1, b"")))}
    api_version, kind = named.get(1, ""), named.get(2, "")
    group = "meta" if kind == "DeleteOptions" else api_version.rpartition("/")[0].partition(".")[0] or "core"
    message = _message_names().get((group, kind))
    if message is None:
        raise RequestError(
            415,
            f"objects of kind {kind!r} are not taken as protobuf here - accepted media types include: "
            "application/json, application/yaml",
        )
    return {"apiVersion": api_version, "kind": kind, **_object(_bytes(envelope.get(2, b"")), message, 0)}


def _object(data: bytes, message: str, depth: int) -> dict[str, Any]:
    """A message as JSON writes it. Empty text counts as absent, as most fields' Go types have it."""
    if depth > _MAX_DEPTH:
        raise bad_request(f"the body is nested deeper than {_MAX_DEPTH} messages")
    table = _messages().get(message, {})
    result: dict[str, Any] = {}
    for number, raw in _fields(data):
        name, label, kind = table.get(number, ("", "", ""))
        match label:
            case "":
                continue
            case "map":
                entry = dict(_fields(_bytes(raw)))
                value = _value(entry.get(2, b""), kind, depth)
                result.setdefault(name, {})[_text(entry.get(1, b""))] = "" if value is None else value
            case "many":
                value = _value(raw, kind, depth)
                result.setdefault(name, []).append("" if value is None else value)
            case "inline":
                result |= _object(_bytes(raw), kind, depth + 1)
            case _ if (value := _value(raw, kind, depth)) not in (None, ""):
                result[name] = value
    return result


def _value(raw: Value, kind: str, depth: int) -> Any:
    reader = _READERS.get(kind)
    return reader(raw) if reader is not None else _object(_bytes(raw), kind, depth + 1)


def _fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """Numbers and values of a message's fields."""
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        wire = key & 7
        if wire == _VARINT:
            number, position = _varint(data, position)
            yield key >> 3, number
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
    for index, byte in enumerate(data[position : position + _MAX_VARINT]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:  # noqa: PLR2004  # the bit that says that more bytes follow
            return value, position + index + 1
    raise bad_request(f"the body is not protobuf: no number at byte {position}")


def _bytes(raw: Value) -> bytes:
    if not isinstance(raw, bytes):
        raise bad_request("the body is not protobuf of its kind: a number where text or a message is expected")
    return raw


def _text(raw: Value) -> str:
    return _bytes(raw).decode("utf-8", "replace")


def _number(raw: Value) -> int:
    if not isinstance(raw, int):
        raise bad_request("the body is not protobuf of its kind: bytes where a number is expected")
    return raw - 2 * _SIGN if raw >= _SIGN else raw


def _encoded(raw: Value) -> str:
    return base64.b64encode(_bytes(raw)).decode()


def _quantity(raw: Value) -> str:
    return _text(dict(_fields(_bytes(raw))).get(1, b""))


def _time(raw: Value) -> str | None:
    seconds = dict(_fields(_bytes(raw))).get(1)
    if seconds is None:
        return None
    try:
        return rfc3339(_EPOCH + timedelta(seconds=_number(seconds)))
    except OverflowError:
        raise bad_request("a time of the body lies outside the calendar") from None


def _int_or_string(raw: Value) -> Any:
    parts = dict(_fields(_bytes(raw)))
    return _text(parts.get(3, b"")) if parts.get(1) == _TEXT_KIND else _number(parts.get(2, 0))


def _json(raw: Value) -> Any:
    held = _bytes(dict(_fields(_bytes(raw))).get(1, b""))
    try:
        return json.loads(held) if held else None
    except (ValueError, RecursionError):
        raise bad_request("a part of the body that must be JSON is not") from None


_READERS: Final[dict[str, Callable[[Value], Any]]] = {
    "string": _text,
    "int32": _number,
    "int64": _number,
    "bool": lambda raw: bool(_number(raw)),
    "bytes": _encoded,
    "Quantity": _quantity,
    "Time": _time,
    "MicroTime": _time,
    "IntOrString": _int_or_string,
    "FieldsV1": _json,
    "RawExtension": _json,
}
