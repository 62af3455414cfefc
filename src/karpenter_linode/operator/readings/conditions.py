"""Readings of the conditions of objects, and of their deletion (spec/karpenter-lifecycle.md 7.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karpenter_linode.model.core import Node
from karpenter_linode.operator.metric_table import CONDITION_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from karpenter_linode.cluster.view import View
    from karpenter_linode.model.meta import Condition, KubeObject
    from karpenter_linode.operator.metrics import Reading


def read_conditions(view: View, now: datetime) -> Iterator[Reading]:
    """Every condition of every object whose conditions are counted, and how long deletions have taken."""
    for kind, keys in CONDITION_KINDS.items():
        for obj in view.all(kind):
            extra = tuple(obj.metadata.labels.get(key, "") for key in keys)
            yield from _object(obj, f"operator_{kind.KIND.lower()}_", extra, now)
            if kind is not Node:
                yield from _object(obj, "operator_", group_and_kind(kind), now)


def group_and_kind(kind: type[KubeObject]) -> tuple[str, str]:
    """What the metrics of all kinds tell them apart by."""
    return kind.API_VERSION.rpartition("/")[0], kind.KIND


def conditions_of(obj: KubeObject) -> tuple[Condition, ...]:
    """The conditions of an object of ``CONDITION_KINDS``."""
    found: tuple[Condition, ...] = obj.status.conditions  # type: ignore[attr-defined]
    return found


def _object(obj: KubeObject, prefix: str, extra: tuple[str, ...], now: datetime) -> Iterator[Reading]:
    where = (obj.namespace, obj.name)
    for condition in {item.type: item for item in conditions_of(obj)}.values():
        series = (*where, condition.type, condition.status, condition.reason, *extra)
        yield f"{prefix}status_condition_count", series, 1
        if condition.last_transition_time is not None:
            seconds = (now - condition.last_transition_time).total_seconds()
            yield f"{prefix}status_condition_current_status_seconds", series, seconds
    if obj.metadata.deletion_timestamp is not None:
        taken = (now - obj.metadata.deletion_timestamp).total_seconds()
        yield f"{prefix}termination_current_time_seconds", (*where, *extra), taken
