"""``Command``: which nodes leave, what takes their place, and why."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from karpenter_linode.disruption.candidates import Candidate
from karpenter_linode.scheduling.problem import PlannedNodeClaim

DisruptionReason = Literal["Empty", "Underutilized", "Drifted"]


class Command(Struct, frozen=True):
    """A disruption decision.

    Args:
        reason: why, as in the ``DisruptionReason`` condition.
        consolidation_type: ``empty``, ``single``, ``multi``, or "" for drift.
        candidates: nodes that leave.
        replacements: NodeClaims that must be initialized before they do.
    """

    reason: DisruptionReason
    consolidation_type: str
    candidates: tuple[Candidate, ...] = ()
    replacements: tuple[PlannedNodeClaim, ...] = ()

    @property
    def decision(self) -> Literal["replace", "delete", "no-op"]:
        """What kind of decision it is."""
        if not self.candidates:
            return "no-op"
        return "replace" if self.replacements else "delete"

    def describe(self, ident: str) -> str:
        """The command as log lines show it.

        Args:
            ident: the id it runs under.
        """
        pools = ", ".join(sorted({candidate.pool.name for candidate in self.candidates}))
        nodes = ", ".join(candidate.name for candidate in self.candidates)
        count = len(self.replacements)
        arrow = f" -> [{count} replacement{'' if count == 1 else 's'}]" if count else ""
        return f"{self.reason}/{ident}: {self.decision}: nodepools=[{pools}]: [{nodes}]{arrow}"
