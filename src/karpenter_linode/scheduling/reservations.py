"""Reserved offerings: capacity that is paid for and must not be promised twice (spec/karpenter-scheduling.md 2.11).

All reservations that a planned claim could use are held for it, since any of them may be picked at launch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from karpenter_linode.model import labels
from karpenter_linode.scheduling.plans import bits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from karpenter_linode.scheduling.plans import PlanOffering, PlanSet
    from karpenter_linode.scheduling.template import ClaimState

NOT_RESERVABLE: Final = (
    "one or more instance types with compatible reserved offerings are available, but could not be reserved"
)
WOULD_LOSE_ALL: Final = "satisfying updated nodeclaim constraints would remove all compatible reserved offering options"


class Held(Struct, frozen=True):
    """Reservations to hold for a claim, by id; or the contract text of why there must be some and are none."""

    ids: frozenset[str] = frozenset()
    refusal: str = ""


class Reservations:
    """What is left of every reservation.

    Args:
        plan_sets: plans of all pools; a reservation that several name has its smallest stated capacity.
        id_label: the label that carries a reservation's id; "" where the provider has none.
        strict: refuse a claim that could use a reservation but gets none (provisioning); else go without.
    """

    def __init__(self, plan_sets: Iterable[PlanSet], id_label: str, *, strict: bool) -> None:
        self._id_label = id_label
        self._strict = strict
        self._left: dict[str, int] = {}
        self._holders: dict[str, set[str]] = {}
        for plans in plan_sets:
            for plan in plans.plans:
                for offering in plan.offerings:
                    if offering.capacity_type == labels.CAPACITY_RESERVED and (name := self._id(offering)):
                        capacity = offering.reservation_capacity
                        self._left[name] = min(self._left.get(name, capacity), capacity)

    @property
    def active(self) -> bool:
        """Whether there is anything to reserve."""
        return bool(self._left)

    def wanted(self, hostname: str, held: frozenset[str], state: ClaimState, mask: int) -> Held:
        """The reservations that a claim with these plans should hold.

        Args:
            hostname: the claim's placeholder.
            held: what it holds now.
            state: its requirements.
            mask: its plans.
        """
        plans = state.template.plans
        compatible = False
        ids = set()
        for position in bits(mask):
            for offering in plans.plans[position].offerings:
                if not offering.available or offering.capacity_type != labels.CAPACITY_RESERVED:
                    continue
                if not state.requirements.compatible(offering.requirements, plans.well_known):
                    continue
                compatible = True
                name = self._id(offering)
                if name and (hostname in self._holders.get(name, ()) or self._left.get(name, 0) > 0):
                    ids.add(name)
        if self._strict and not ids and (compatible or held):
            return Held(refusal=NOT_RESERVABLE if compatible else WOULD_LOSE_ALL)
        return Held(frozenset(ids))

    def hold(self, hostname: str, held: frozenset[str], ids: frozenset[str]) -> None:
        """Hold exactly these for a claim, giving back the others."""
        for name in sorted(ids - held):
            self._holders.setdefault(name, set()).add(hostname)
            self._left[name] -= 1
        for name in sorted(held - ids):
            self._holders[name].discard(hostname)
            self._left[name] += 1

    def _id(self, offering: PlanOffering) -> str:
        item = offering.requirements.find(self._id_label) if self._id_label else None
        return min(item.values) if item is not None and item.values and not item.complement else ""
