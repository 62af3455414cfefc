"""From what the searches found, instance type by instance type, to one allocation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karpenter_linode.dra.allocation import Allocation, ClaimAllocation, CounterCharge, DeviceGrant
from karpenter_linode.model.quantity import Quantity
from karpenter_linode.model.requirements import EMPTY, Requirements

if TYPE_CHECKING:
    from collections.abc import Sequence

    from karpenter_linode.dra.devices import Candidate
    from karpenter_linode.dra.prepare import PreparedClaim
    from karpenter_linode.dra.search import Choice, Found
    from karpenter_linode.dra.view import View
    from karpenter_linode.model.reason import Reason


class _Part:
    """One claim's share of the answer."""

    __slots__ = ("bound", "contributed", "devices", "key")

    def __init__(self, key: str) -> None:
        self.key = key
        self.devices: dict[str, tuple[DeviceGrant, ...]] = {}
        self.contributed: dict[str, Requirements] = {}
        self.bound = False

    def add(self, instance_type: str, grant: DeviceGrant, candidate: Candidate) -> None:
        self.devices[instance_type] = (*self.devices[instance_type], grant)
        self.contributed[instance_type] = self.contributed[instance_type].merge(candidate.requirements)
        self.bound = self.bound or candidate.local


class Answer:
    """Collects what each instance type's search found.

    Args:
        target_id: where.
        claims: that were searched for, in order.
    """

    def __init__(self, target_id: str, claims: Sequence[PreparedClaim]) -> None:
        self._target = target_id
        self._parts = [_Part(claim.key) for claim in claims]
        self._types: list[str] = []
        self._charges: dict[str, tuple[CounterCharge, ...]] = {}

    def __bool__(self) -> bool:
        return bool(self._types)

    def add(self, instance_type: str, view: View, found: Found) -> None:
        """One instance type can carry the claims."""
        self._types.append(instance_type)
        for part in self._parts:
            part.devices[instance_type] = ()
            part.contributed[instance_type] = EMPTY
        charges: list[CounterCharge] = []
        for choice in found.choices:
            candidate = view.candidates[choice.index]
            self._parts[choice.claim].add(instance_type, _grant(choice, candidate), candidate)
            if choice.pays and not choice.alternative.admin:
                charges.extend((candidate.pool, counter, amount) for counter, amount in candidate.counters)
        if charges:
            self._charges[instance_type] = tuple(charges)

    def allocation(self, requirements: Requirements, rejected: Sequence[Reason]) -> Allocation:
        """Everything together."""
        claims = tuple(
            ClaimAllocation(part.key, self._target, part.devices, part.contributed, part.bound) for part in self._parts
        )
        return Allocation(self._target, tuple(self._types), requirements, claims, tuple(rejected), self._charges)


def _grant(choice: Choice, candidate: Candidate) -> DeviceGrant:
    consumed = None
    if choice.consumed is not None:
        capacity = candidate.device.capacity
        consumed = tuple(
            (name, Quantity(amount, capacity[name].value.notation)) for name, amount in choice.consumed.items()
        )
    return DeviceGrant(candidate.id, choice.alternative.label, consumed, choice.alternative.admin)
