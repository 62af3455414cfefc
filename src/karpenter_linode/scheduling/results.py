"""Questions that disruption asks about a Solution (spec/karpenter-scheduling.md 2.15)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karpenter_linode.model.wording import few

if TYPE_CHECKING:
    from collections.abc import Container

    from karpenter_linode.scheduling.problem import Solution, Unplaced


def non_pending_unplaced(solution: Solution, pending_uids: Container[str]) -> tuple[Unplaced, ...]:
    """Unplaced pods other than those that were pending anyway.

    Args:
        solution: the answer of a simulation.
        pending_uids: UIDs of pods that waited for a place before the simulation began.
    """
    return tuple(item for item in solution.unplaced if item.pod.uid not in pending_uids)


def non_pending_errors(solution: Solution, pending_uids: Container[str]) -> str:
    """The contract text about them: at most five by name, then how many more."""
    left = non_pending_unplaced(solution, pending_uids)
    if not left:
        return "No Pod Scheduling Errors"
    texts = [f"{item.pod.key} => {item.reason.message}" for item in left]
    return f"not all pods would schedule, {few(texts, separator=' ')}"
