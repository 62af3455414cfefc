"""Questions that disruption asks about a Solution (spec/karpenter-scheduling.md 2.15)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Container

    from karpenter_linode.scheduling.problem import Solution, Unplaced

_SHOWN: Final = 5


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
    shown = " ".join(f"{item.pod.key} => {item.reason.message}" for item in left[:_SHOWN])
    more = f" and {len(left) - _SHOWN} other(s)" if len(left) > _SHOWN else ""
    return f"not all pods would schedule, {shown}{more}"
