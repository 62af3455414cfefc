"""Devices that claims hold already, read from ``status.allocation`` (spec/dra-allocation.md 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, Struct, field

from karpenter_linode.dra.capacity import Amounts
from karpenter_linode.model.resource import DeviceID

if TYPE_CHECKING:
    from collections.abc import Iterable

    from karpenter_linode.dra.devices import CounterKey
    from karpenter_linode.dra.pools import Pool
    from karpenter_linode.model.resource import ResourceClaim

NOBODY: frozenset[str] = frozenset()


class InUse(Struct, frozen=True):
    """Devices that are allocated already.

    Args:
        exclusive: devices held by one claim.
        shares: nano-units taken of each capacity of devices that are shared.
    """

    exclusive: frozenset[DeviceID] = frozenset()
    shares: dict[DeviceID, Amounts] = field(default_factory=dict)

    def __contains__(self, device: DeviceID) -> bool:
        return device in self.exclusive or device in self.shares


def in_use(claims: Iterable[ResourceClaim], deleting_pod_uids: frozenset[str] = NOBODY) -> InUse:
    """What the claims of a cluster hold.

    A device is free again when every claim that holds it is used by deleting pods alone. Administrative access holds
    nothing. A claim that nobody uses keeps its devices: its next pod may come any time.
    """
    exclusive: set[DeviceID] = set()
    shares: dict[DeviceID, Amounts] = {}
    for claim in claims:
        if claim.status.allocation is None or released(claim, deleting_pod_uids):
            continue
        for result in claim.status.allocation.devices.results:
            if result.admin_access:
                continue
            device = DeviceID(result.driver, result.pool, result.device)
            if result.consumed_capacity is UNSET:
                exclusive.add(device)
                continue
            amounts = shares.setdefault(device, {})
            for name, quantity in result.consumed_capacity.items():
                amounts[name] = amounts.get(name, 0) + quantity.nano
    return InUse(frozenset(exclusive), {device: held for device, held in shares.items() if device not in exclusive})


def released(claim: ResourceClaim, deleting_pod_uids: frozenset[str]) -> bool:
    """Whether a claim is used by deleting pods alone; any other consumer keeps it (spec 5.2)."""
    consumers = claim.status.reserved_for
    return bool(consumers) and all(
        consumer.resource == "pods" and not consumer.api_group and consumer.uid in deleting_pod_uids
        for consumer in consumers
    )


def left_of(pool: Pool, held: InUse) -> dict[CounterKey, int]:
    """A pool's counters less what devices in use consume, in reach or not; a shared device pays once."""
    left = dict(pool.budgets)
    driver, name, _ = pool.key
    for device, counters in pool.consumers.items():
        if DeviceID(driver, name, device) in held:
            for counter, amount in counters:
                left[counter] = left.get(counter, 0) - amount
    return left
