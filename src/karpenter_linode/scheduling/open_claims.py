"""NodeClaims planned in this simulation, and the order in which pods try them.

Pods try the claim with the fewest pods first; among equals the order of an insertion-stable sort by pod count holds:
a claim that got a pod stands before those that already had as many (spec/karpenter-scheduling.md 2.7).
"""

from __future__ import annotations

from bisect import insort
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from karpenter_linode.model.core import Pod
    from karpenter_linode.model.reason import Reason
    from karpenter_linode.scheduling.ports import HostPort
    from karpenter_linode.scheduling.resources import Resources
    from karpenter_linode.scheduling.template import ClaimState, Template

_STALE_SLACK: Final = 16


class OpenClaim:
    """A NodeClaim being filled.

    Args:
        index: its number; bit ``1 << index`` of every mask over claims.
        name: stable id within the solution.
        hostname: the placeholder for its node's name, never repeated within a simulation.
        state: template and requirements; the template stays.
        plans: mask of the plans that are still possible.
        relaxed_min_values: whether minValues was lowered to open it.
    """

    __slots__ = (
        "bit",
        "devices",
        "hostname",
        "index",
        "name",
        "order",
        "plans",
        "pods",
        "ports",
        "rejected",
        "relaxed_min_values",
        "reserved",
        "state",
        "template",
        "total",
    )

    def __init__(self, index: int, name: str, state: ClaimState, plans: int, *, relaxed_min_values: bool) -> None:
        self.index = index
        self.bit = 1 << index
        self.name = name
        self.hostname = placeholder(index)
        self.state = state
        self.template: Template = state.template
        self.plans = plans
        self.relaxed_min_values = relaxed_min_values
        self.total: Resources = {}
        self.ports: tuple[HostPort, ...] = ()
        self.pods: list[Pod] = []
        self.devices = False
        self.rejected: dict[str, Reason] = {}  # plans that lack devices, by what was refused
        self.reserved: frozenset[str] = frozenset()
        self.order = 0


class OpenClaims:
    """All planned claims, ordered by pod count."""

    def __init__(self) -> None:
        self.claims: list[OpenClaim] = []
        self.everything = 0
        self._levels: list[int] = []
        self._masks: dict[int, int] = {}
        self._queues: dict[int, list[OpenClaim]] = {}
        self._clock = 0
        self._per_pool: dict[str, int] = {}

    @property
    def next_hostname(self) -> str:
        """The placeholder that the next new claim will have."""
        return placeholder(len(self.claims))

    def open(self, state: ClaimState, plans: int, *, relaxed_min_values: bool) -> OpenClaim:
        """A new claim, still without pods and not yet offered to any."""
        pool = state.template.name
        number = self._per_pool[pool] = self._per_pool.get(pool, 0) + 1
        claim = OpenClaim(len(self.claims), f"{pool}-{number}", state, plans, relaxed_min_values=relaxed_min_values)
        self.claims.append(claim)
        self.everything |= claim.bit
        state.members |= claim.bit
        return claim

    def move(self, claim: OpenClaim, state: ClaimState) -> None:
        """Give a claim another state."""
        claim.state.members &= ~claim.bit
        state.members |= claim.bit
        claim.state = state

    def count(self, claim: OpenClaim, added: int = 1) -> None:
        """Put a claim where it belongs after it got pods."""
        pods = len(claim.pods)
        self._clock += 1
        if pods > added:
            self._leave(claim, pods - added)
        claim.order = self._clock if pods == 1 else -self._clock
        if pods not in self._masks:
            insort(self._levels, pods)
            self._masks[pods] = 0
            self._queues[pods] = []
        self._masks[pods] |= claim.bit
        self._queues[pods].append(claim)

    def fewest_pods(self, mask: int) -> int | None:
        """The smallest pod count among the claims of a mask, or None for an empty mask."""
        return next((level for level in self._levels if mask & self._masks[level]), None)

    def first(self, mask: int) -> OpenClaim | None:
        """The claim of a mask that pods try first."""
        for level in self._levels:
            found = mask & self._masks[level]
            if found:
                return self._first_in(level, found)
        return None

    def _leave(self, claim: OpenClaim, level: int) -> None:
        left = self._masks[level] & ~claim.bit
        if left:
            self._masks[level] = left
            queue = self._queues[level]
            if len(queue) > 2 * left.bit_count() + _STALE_SLACK:
                self._queues[level] = [item for item in queue if item.bit & left]
        else:
            del self._masks[level], self._queues[level]
            self._levels.remove(level)

    def _first_in(self, level: int, found: int) -> OpenClaim:
        if found & (found - 1) == 0:
            return self.claims[found.bit_length() - 1]
        queue = self._queues[level]
        few = found.bit_count()
        if few * few > len(queue):
            return next(claim for claim in (queue if level == 1 else reversed(queue)) if claim.bit & found)
        best: OpenClaim | None = None
        while found:
            low = found & -found
            claim = self.claims[low.bit_length() - 1]
            if best is None or claim.order < best.order:
                best = claim
            found ^= low
        if best is None:
            msg = "an empty mask has no first claim"
            raise ValueError(msg)
        return best


def placeholder(index: int) -> str:
    """The hostname that stands for the node of the claim with this number."""
    return f"hostname-placeholder-{index + 1:04d}"
