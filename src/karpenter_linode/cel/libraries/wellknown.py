"""What message literals of Protocol Buffers' well-known types make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.cel.declarations import Library, Overload, function
from karpenter_linode.cel.libraries.operators import checked_duration, checked_timestamp
from karpenter_linode.cel.types import BOOL, BYTES, DOUBLE, DURATION, DYN, INT, STRING, TIMESTAMP, Type, list_of, map_of

if TYPE_CHECKING:
    from karpenter_linode.cel.values import Duration, Timestamp

_SECOND: Final = 10**9
_COST: Final = 40  # of building a message
_WRAPPED: Final = {
    "BoolValue": BOOL,
    "StringValue": STRING,
    "BytesValue": BYTES,
    "Int64Value": INT,
    "Int32Value": INT,
    "DoubleValue": DOUBLE,
    "FloatValue": DOUBLE,
    "Struct": map_of(STRING, DYN),
    "ListValue": list_of(DYN),
}


def _duration(seconds: int, nanos: int) -> Duration:
    return checked_duration(seconds * _SECOND + nanos)


def _timestamp(seconds: int, nanos: int) -> Timestamp:
    return checked_timestamp(seconds * _SECOND + nanos)


def _holder(name: str, kind: Type) -> tuple[Overload, ...]:
    return (function(f"make_{name}", (kind,), kind, lambda value: value, cost=_COST),)


LIBRARY: Final = Library(
    "well-known messages",
    {
        **{f"@google.protobuf.{name}": _holder(name, kind) for name, kind in _WRAPPED.items()},
        "@google.protobuf.Duration": (function("make_duration", (INT, INT), DURATION, _duration, cost=_COST),),
        "@google.protobuf.Timestamp": (function("make_timestamp", (INT, INT), TIMESTAMP, _timestamp, cost=_COST),),
    },
)
