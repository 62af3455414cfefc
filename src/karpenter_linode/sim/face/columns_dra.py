"""Columns of dynamic resource allocation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.sim.face.columns import AGE, NAME, Column, dig, text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

Plain = dict[str, Any]


def _state(plain: Plain, _now: datetime) -> str:
    deleted = "deletionTimestamp" in plain["metadata"]
    words = ["deleted"] if deleted else []
    if dig(plain, "status", "allocation") is None:
        words += [] if deleted else ["pending"]
    else:
        words += ["allocated", "reserved"] if dig(plain, "status", "reservedFor") else ["allocated"]
    return ",".join(words)


DRA_COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "ResourceClaim": (NAME, Column("State", _state), AGE),
    "ResourceSlice": (
        NAME,
        text("Node", "spec", "nodeName"),
        text("Driver", "spec", "driver"),
        text("Pool", "spec", "pool", "name"),
        AGE,
    ),
}
