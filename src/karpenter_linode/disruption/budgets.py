"""Disruption budgets: how many nodes of a pool may leave now (spec/karpenter-lifecycle.md 3.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from karpenter_linode.disruption.schedule import ScheduleError, parse_schedule
from karpenter_linode.model.condition_types import INSTANCE_TERMINATING
from karpenter_linode.model.duration import DurationError, parse_duration
from karpenter_linode.model.meta import is_true
from karpenter_linode.scheduling.state_node import NodeView

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from karpenter_linode.model.karpenter import Budget, NodePool
    from karpenter_linode.scheduling.problem import StateNode

UNLIMITED: Final = 2**31 - 1
_WHOLE: Final = 100
_MAX_DIGITS: Final = 18  # the CRD bounds neither the length nor the number


class BudgetError(ValueError):
    """A budget can't be evaluated. The message names the field."""


class PoolBudget(Struct, frozen=True):
    """Room for disruption in one pool, for one reason.

    Args:
        total: nodes that count.
        disrupting: nodes that are away or leaving already.
        allowed: how many may be away at once.
        error: why a budget couldn't be evaluated (``allowed`` is 0 then), or "".
    """

    total: int
    disrupting: int
    allowed: int
    error: str = ""

    @property
    def remaining(self) -> int:
        """How many more may leave now."""
        return max(self.allowed - self.disrupting, 0)


def is_active(budget: Budget, now: datetime) -> bool:
    """Whether a budget is in force. Raises ``BudgetError``."""
    if budget.schedule is None and budget.duration is None:
        return True
    if budget.schedule is None or budget.duration is None:
        msg = "'schedule' must be set with 'duration'"
        raise BudgetError(msg)
    try:
        hit = parse_schedule(budget.schedule).hit_after(now - parse_duration(budget.duration))
    except (ScheduleError, DurationError) as error:
        msg = f"invalid schedule or duration, {error}"
        raise BudgetError(msg) from error
    return hit is not None and hit <= now


def allowed_by(budget: Budget, total: int, now: datetime) -> int:
    """How many nodes one budget allows to be away; an inactive one allows all. Raises ``BudgetError``."""
    if not is_active(budget, now):
        return UNLIMITED
    text = budget.nodes
    number = text.removesuffix("%")
    if not number.isdecimal() or not number.isascii() or len(number) > _MAX_DIGITS:
        msg = f"nodes {text[: _MAX_DIGITS + 1]!r} is not a number or a percentage"
        raise BudgetError(msg)
    return -(-int(number) * total // _WHOLE) if text.endswith("%") else int(number)


def allowed_disruptions(pool: NodePool, reason: str, total: int, now: datetime) -> tuple[int, str]:
    """The strictest budget for a reason, and what went wrong. One bad budget, for whatever reason, allows nothing."""
    allowed = UNLIMITED
    for budget in pool.spec.disruption.budgets:
        try:
            value = allowed_by(budget, total, now)
        except BudgetError as error:
            return 0, f"invalid disruption budgets in nodepool {pool.name}, {error}"
        if budget.reasons is None or reason in budget.reasons:
            allowed = min(allowed, value)
    return allowed, ""


def pool_budgets(
    pools: Iterable[NodePool],
    states: Iterable[StateNode],
    reason: str,
    now: datetime,
) -> dict[str, PoolBudget]:
    """The room that each pool has for a reason, by pool name.

    Args:
        pools: NodePools.
        states: every state node.
        reason: ``Empty``, ``Underutilized`` or ``Drifted``.
        now: the time.
    """
    totals: dict[str, int] = {}
    disrupting: dict[str, int] = {}
    for state in states:
        node = NodeView(state)
        if not _counts(node):
            continue
        totals[node.node_pool] = totals.get(node.node_pool, 0) + 1
        ready = state.node is not None and is_true(state.node.status.conditions, "Ready")
        if state.marked_for_deletion or not ready:
            disrupting[node.node_pool] = disrupting.get(node.node_pool, 0) + 1
    budgets = {}
    for pool in pools:
        total = totals.get(pool.name, 0)
        allowed, error = allowed_disruptions(pool, reason, total, now)
        budgets[pool.name] = PoolBudget(total, disrupting.get(pool.name, 0), allowed, error)
    return budgets


def _counts(node: NodeView) -> bool:
    claim = node.node_claim
    return claim is not None and node.initialized and not is_true(claim.status.conditions, INSTANCE_TERMINATING)
