"""``minValues``: how many distinct values of a label the allowed plans must keep (spec/karpenter-scheduling.md 5.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from karpenter_linode.model.requirement import Requirement
from karpenter_linode.scheduling.plans import bits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from karpenter_linode.model.requirements import Requirements
    from karpenter_linode.scheduling.plans import PlanSet


class Shortfall(Struct, frozen=True):
    """A key with fewer distinct values than asked."""

    key: str
    wanted: int
    found: int


class MinValues(Struct, frozen=True):
    """The demands of one set of requirements, sorted by key."""

    wanted: tuple[tuple[str, int], ...]

    @staticmethod
    def of(requirements: Requirements) -> MinValues | None:
        """The demands in these requirements, or None where there are none."""
        wanted = tuple(sorted((item.key, item.min_values) for item in requirements if item.min_values is not None))
        return MinValues(wanted) if wanted else None

    def shortfalls(self, plans: PlanSet, mask: int) -> tuple[Shortfall, ...]:
        """The keys that the plans of a mask fall short on. No plans at all satisfy everything (trap 28)."""
        if not mask:
            return ()
        missing = []
        for key, wanted in self.wanted:
            values: set[str] = set()
            for position in bits(mask):
                item = plans.plans[position].requirements.find(key)
                if item is not None and not item.complement:
                    values |= item.values
            if len(values) < wanted:
                missing.append(Shortfall(key, wanted, len(values)))
        return tuple(missing)


def lowered(requirements: Requirements, shortfalls: Iterable[Shortfall]) -> Requirements:
    """The requirements asking only for what there is.

    Where plans have no value of a label at all that is nothing, so that pods that come later may join; what is
    written into a NodeClaim asks for one at least (trap 27).
    """
    for shortfall in shortfalls:
        item = requirements.get(shortfall.key)
        requirements = requirements.replace(
            Requirement(
                item.key,
                item.values,
                complement=item.complement,
                gte=item.gte,
                lte=item.lte,
                min_values=shortfall.found,
            )
        )
    return requirements


def refusal(shortfalls: Iterable[Shortfall]) -> str:
    """The contract text."""
    keys = " ".join(shortfall.key for shortfall in shortfalls)
    return f"minValues requirement is not met for label(s) (label(s)=[{keys}])"
