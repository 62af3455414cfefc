"""Emptiness: nodes on which nothing runs that would have to move (spec/karpenter-lifecycle.md 3.7 and 3.11).

It serves every consolidation policy, and needs neither prices nor plans.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from karpenter_linode.disruption.command import Command
from karpenter_linode.model.condition_types import CONSOLIDATABLE
from karpenter_linode.model.karpenter import NEVER
from karpenter_linode.model.meta import is_true
from karpenter_linode.model.reason import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from karpenter_linode.disruption.budgets import PoolBudget
    from karpenter_linode.disruption.candidates import Candidate, Survey

EMPTY: Final = "Empty"
CONSOLIDATION_TYPE: Final = "empty"


class Validated(Struct, frozen=True):
    """What is left of a command after validation.

    Args:
        command: the candidates that are still empty and allowed to go; None where none is.
        dropped: how many are not.
        failure: which check failed last, for the events.
        message: what to say where nothing is left.
    """

    command: Command | None
    dropped: int = 0
    failure: Literal["", "churn", "budget"] = ""
    message: str = ""


def eligible(survey: Survey) -> tuple[Candidate, ...]:
    """Candidates that emptiness may remove."""
    return tuple(candidate for candidate in survey.candidates if refusal(candidate) is None)


def refusal(candidate: Candidate) -> Reason | None:
    """Why a candidate is not removed as empty, or None."""
    pool = candidate.pool
    if pool.spec.replicas is not None:
        return Reason("static-pool", f'NodePool "{pool.name}" is static')
    if pool.spec.disruption.consolidate_after == NEVER:
        return Reason("consolidation-disabled", f'NodePool "{pool.name}" has consolidation disabled')
    if not candidate.is_empty:
        return Reason("not-empty", f"{len(candidate.pods)} pod(s) would have to move")
    claim = candidate.state.node_claim
    if claim is None or not is_true(claim.status.conditions, CONSOLIDATABLE):
        return Reason("not-consolidatable", "the node is not consolidatable yet")
    return None


def plan_emptiness(candidates: Iterable[Candidate], budgets: Mapping[str, PoolBudget]) -> Command:
    """One command for every empty node that its pool's budget lets go."""
    return _command(_within(candidates, budgets))


def validate_emptiness(command: Command, survey: Survey, budgets: Mapping[str, PoolBudget]) -> Validated:
    """Look again before acting: only what is empty still, and still allowed, goes.

    Args:
        command: what was planned.
        survey: candidates as they are now; nominated nodes are none.
        budgets: budgets as they are now.
    """
    planned = {candidate.id for candidate in command.candidates}
    still_empty = [candidate for candidate in eligible(survey) if candidate.id in planned]
    if not still_empty:
        message = f"{len(planned)} candidates are no longer valid"
        return Validated(None, len(planned), "churn", message)
    allowed = _within(still_empty, budgets)
    dropped = len(planned) - len(allowed)
    if not allowed:
        message = (
            f"{len(planned)} candidates failed validation because it they were nominated for a pod or would violate "
            "disruption budgets"
        )
        return Validated(None, dropped, "budget", message)
    return Validated(_command(allowed), dropped)


def _within(candidates: Iterable[Candidate], budgets: Mapping[str, PoolBudget]) -> list[Candidate]:
    room = {name: budget.remaining for name, budget in budgets.items()}
    chosen = []
    for candidate in sorted(candidates, key=lambda item: item.id):
        if room.get(candidate.pool.name, 0) > 0:
            room[candidate.pool.name] -= 1
            chosen.append(candidate)
    return chosen


def _command(candidates: Iterable[Candidate]) -> Command:
    return Command("Empty", CONSOLIDATION_TYPE, tuple(candidates))
