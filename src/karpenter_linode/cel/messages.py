"""The messages of Protocol Buffers that an expression can spell: they have values of their own."""

from __future__ import annotations

from typing import Final

FIELDS: Final[dict[str, dict[str, object]]] = {
    "google.protobuf.Duration": {"seconds": 0, "nanos": 0},
    "google.protobuf.Timestamp": {"seconds": 0, "nanos": 0},
    "google.protobuf.Struct": {"fields": {}},
    "google.protobuf.ListValue": {"values": []},
    "google.protobuf.BoolValue": {"value": False},
    "google.protobuf.StringValue": {"value": ""},
    "google.protobuf.BytesValue": {"value": b""},
    "google.protobuf.Int64Value": {"value": 0},
    "google.protobuf.Int32Value": {"value": 0},
    "google.protobuf.DoubleValue": {"value": 0.0},
    "google.protobuf.FloatValue": {"value": 0.0},
}
"""By name: the fields in their order, with the values of absent ones. The functions behind them are in
``libraries.wellknown``, under the name with ``@`` before it."""
