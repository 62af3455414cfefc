"""Condition sets: transition times, observed generations and the root ``Ready`` (spec/karpenter-lifecycle.md 0.2)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from karpenter_linode.model import condition_types as types
from karpenter_linode.model.meta import Condition, find_condition

if TYPE_CHECKING:
    from karpenter_linode.model.karpenter import LinodeNodeClass, NodeClaim, NodePool

AWAITING: Final = "AwaitingReconciliation"
_AWAITING_MESSAGE: Final = "object is awaiting reconciliation"
_EPOCH: Final = datetime.min.replace(tzinfo=UTC)


class ConditionSet(Struct, frozen=True):
    """Conditions of one object, as a value: every change gives a new set.

    Args:
        conditions: as they stand on the object.
        dependents: types that ``Ready`` sums up.
        generation: the object's generation.
        created: the object's creation time; dependents count from there.
        deleting: whether deletion has begun.
        now: the time of the change, in whole seconds as the API keeps it.
    """

    conditions: tuple[Condition, ...]
    dependents: tuple[str, ...]
    generation: int
    created: datetime | None
    deleting: bool
    now: datetime

    def get(self, kind: str) -> Condition | None:
        """A condition, or None."""
        return find_condition(self.conditions, kind)

    def status(self, kind: str) -> str:
        """``True``, ``False``, ``Unknown``, or "" where there is no such condition."""
        condition = self.get(kind)
        return condition.status if condition is not None else ""

    def is_true(self, kind: str) -> bool:
        """Whether a condition is True."""
        return self.status(kind) == "True"

    def since(self, kind: str) -> datetime | None:
        """When a condition took its present status."""
        condition = self.get(kind)
        return condition.last_transition_time if condition is not None else None

    def set_true(self, kind: str, reason: str = "", message: str = "") -> ConditionSet:
        """Set to True; the reason defaults to the type."""
        return self.set(kind, "True", reason or kind, message)

    def set_false(self, kind: str, reason: str, message: str = "") -> ConditionSet:
        """Set to False."""
        return self.set(kind, "False", reason, message)

    def set_unknown(self, kind: str, reason: str, message: str = "") -> ConditionSet:
        """Set to Unknown."""
        return self.set(kind, "Unknown", reason, message)

    def refresh(self, kind: str) -> ConditionSet:
        """Set a condition to itself, so that it's known to hold for the present generation."""
        condition = self.get(kind)
        return self if condition is None else self.set(kind, condition.status, condition.reason, condition.message)

    def set(self, kind: str, status: str, reason: str, message: str) -> ConditionSet:
        """Set a condition and recompute ``Ready``."""
        changed = self._put(kind, status, reason, message)
        return changed if changed is self or kind == types.READY else changed.with_ready()

    def clear(self, kind: str) -> ConditionSet:
        """Remove a condition. Dependents can't be removed: they are returned as they stand."""
        if kind in self.dependents or self.get(kind) is None:
            return self
        kept = tuple(sorted((item for item in self.conditions if item.type != kind), key=lambda item: item.type))
        return replace(self, conditions=kept)

    def _put(self, kind: str, status: str, reason: str, message: str) -> ConditionSet:
        old = self.get(kind)
        if old is not None:
            since = old.last_transition_time if old.status == status else self.now
        else:
            since = self.created if kind in self.dependents else self.now
        new = Condition(kind, status, reason, message, since, self.generation)
        if new == old:
            return self
        others = [self._seen(item) for item in self.conditions if item.type != kind]
        return replace(self, conditions=self._ordered((*others, new)))

    def _seen(self, condition: Condition) -> Condition:
        return replace(condition, observed_generation=self.generation) if self.deleting else condition

    def _ordered(self, conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
        return tuple(
            sorted(conditions, key=lambda item: (item.type == types.READY, item.last_transition_time or _EPOCH)),
        )

    def with_ready(self) -> ConditionSet:
        """``Ready`` as the dependents have it now."""
        unhealthy = sorted(
            (item for item in map(self.get, self.dependents) if item is not None and not self._healthy(item)),
            key=lambda item: item.last_transition_time or _EPOCH,
            reverse=True,
        )
        if not unhealthy:
            return self._put(types.READY, "True", types.READY, "")
        message = ", ".join(f"{item.type}={item.status}" for item in unhealthy)
        if any(item.status == "False" and item.observed_generation == self.generation for item in unhealthy):
            return self._put(types.READY, "False", "UnhealthyDependents", message)
        return self._put(types.READY, "Unknown", "ReconcilingDependents", message)

    def _healthy(self, condition: Condition) -> bool:
        return condition.status == "True" and condition.observed_generation == self.generation


def condition_set(
    obj: NodeClaim | NodePool | LinodeNodeClass,
    dependents: tuple[str, ...],
    now: datetime,
) -> ConditionSet:
    """The conditions of an object; dependents and ``Ready`` that are missing appear as Unknown."""
    meta = obj.metadata
    conditions = ConditionSet(
        conditions=obj.status.conditions,
        dependents=dependents,
        generation=meta.generation,
        created=meta.creation_timestamp,
        deleting=meta.deletion_timestamp is not None,
        now=now.replace(microsecond=0),
    )
    for kind in (types.READY, *dependents):
        if conditions.get(kind) is None:
            conditions = conditions.set_unknown(kind, AWAITING, _AWAITING_MESSAGE)
    return conditions


def of_node_claim(claim: NodeClaim, now: datetime) -> ConditionSet:
    """Conditions of a NodeClaim."""
    return condition_set(claim, types.NODE_CLAIM_DEPENDENTS, now)


def of_node_pool(pool: NodePool, now: datetime) -> ConditionSet:
    """Conditions of a NodePool."""
    return condition_set(pool, types.NODE_POOL_DEPENDENTS, now)


def of_node_class(node_class: LinodeNodeClass, now: datetime) -> ConditionSet:
    """Conditions of a LinodeNodeClass."""
    return condition_set(node_class, types.NODE_CLASS_DEPENDENTS, now)


def with_conditions(claim: NodeClaim, conditions: ConditionSet) -> NodeClaim:
    """The NodeClaim with these conditions."""
    return replace(claim, status=replace(claim.status, conditions=conditions.conditions))
