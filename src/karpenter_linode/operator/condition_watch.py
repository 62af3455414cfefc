"""Counts what conditions of objects turn into, and tells it in events (spec/karpenter-lifecycle.md 7.1 and 7.2)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from karpenter_linode.model.core import Node
from karpenter_linode.model.meta import find_condition
from karpenter_linode.operator.metric_table import CONDITION_KINDS, label_name
from karpenter_linode.operator.readings.conditions import conditions_of, group_and_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from karpenter_linode.controllers.hub import Change
    from karpenter_linode.controllers.runtime import Runtime
    from karpenter_linode.model.meta import Condition, KubeObject


class ConditionWatch:
    """Sees every change of an object whose conditions count.

    What was there when the controller began counts as a transition but makes no event, as nobody knows what it was
    before.

    Args:
        runtime: where changes are published, counted and told.
        leads: whether this process leads; replicas that stand by keep quiet.
    """

    def __init__(self, runtime: Runtime, leads: Callable[[], bool]) -> None:
        self._clock, self._metrics, self._events, self._leads = runtime.clock, runtime.metrics, runtime.events, leads
        for kind, keys in CONDITION_KINDS.items():
            runtime.hub.subscribe(kind, partial(self._on_change, keys))

    def _on_change(self, keys: tuple[str, ...], change: Change) -> None:
        if not self._leads():
            return
        old, new = _same(change)
        if old is not None:
            self._finalizers(old, new)
        if new is None:
            self._ended(change.object, keys)
            return
        before = conditions_of(old) if old is not None else ()
        for condition in conditions_of(new):
            known = find_condition(before, condition.type)
            if known is None or known.status != condition.status:
                self._turned(new, keys, known, condition)

    def _turned(self, obj: KubeObject, keys: tuple[str, ...], known: Condition | None, condition: Condition) -> None:
        for prefix, extra in _metrics_of(obj, keys):
            labels = {**extra, "type": condition.type, "status": condition.status, "reason": condition.reason}
            self._metrics.increment(f"{prefix}status_condition_transitions_total", labels)
        if known is None:
            return
        if known.last_transition_time is not None and condition.last_transition_time is not None:
            seconds = (condition.last_transition_time - known.last_transition_time).total_seconds()
            for prefix, extra in _metrics_of(obj, keys):
                labels = {**extra, "type": known.type, "status": known.status}
                self._metrics.observe(f"{prefix}status_condition_transition_seconds", labels, max(seconds, 0))
        message = f", Message: {condition.message}" if condition.message else ""
        text = (
            f"Status condition transitioned, Type: {condition.type}, Status: {known.status} -> {condition.status}, "
            f"Reason: {condition.reason}{message}"
        )
        self._events.publish(obj, "Normal", condition.type, text, dedupe_seconds=0)

    def _finalizers(self, old: KubeObject, new: KubeObject | None) -> None:
        if old.metadata.deletion_timestamp is None and (new is None or new.metadata.deletion_timestamp is None):
            return
        left = new.metadata.finalizers if new is not None else ()
        for finalizer in old.metadata.finalizers:
            if finalizer not in left:
                self._events.publish(new or old, "Normal", "Finalized", f"Finalized {finalizer}", dedupe_seconds=0)

    def _ended(self, obj: KubeObject, keys: tuple[str, ...]) -> None:
        deleted = obj.metadata.deletion_timestamp
        if deleted is None:
            return
        for prefix, extra in _metrics_of(obj, keys):
            seconds = (self._clock.now() - deleted).total_seconds()
            self._metrics.observe(f"{prefix}termination_duration_seconds", extra, max(seconds, 0))


def _same(change: Change) -> tuple[KubeObject | None, KubeObject | None]:
    """Before and now, where both are the same object; a new one under an old name has no past."""
    old, new = change.old, change.new
    return (None if old is not None and new is not None and old.uid != new.uid else old), new


def _metrics_of(obj: KubeObject, keys: tuple[str, ...]) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Prefixes of the metrics that an object counts in, with its labels there."""
    kind = type(obj)
    yield f"operator_{kind.KIND.lower()}_", {label_name(key): obj.metadata.labels.get(key, "") for key in keys}
    if kind is not Node:
        yield "operator_", dict(zip(("group", "kind"), group_and_kind(kind), strict=True))
