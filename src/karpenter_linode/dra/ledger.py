"""Devices given away in this round, by target and instance type (spec/dra-allocation.md 6).

A target ends as one instance type, so its instance types may all count on the same device, while others may not; what a
target holds of a shared device or a counter is the most that any of its instance types takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from karpenter_linode.dra.allocation import Allocation, DeviceGrant
    from karpenter_linode.dra.capacity import Amounts
    from karpenter_linode.dra.devices import PoolKey
    from karpenter_linode.model.resource import DeviceID

K = TypeVar("K", bound="Hashable")
Place = tuple[str, str]
"""Target id and instance type."""


class _Charges(Generic[K]):
    """Amounts charged to things, kept by target and instance type."""

    def __init__(self) -> None:
        self._by_thing: dict[K, dict[str, dict[str, dict[Hashable, int]]]] = {}

    def add(self, thing: K, place: Place, amounts: Iterable[tuple[Hashable, int]]) -> None:
        target, instance_type = place
        held = self._by_thing.setdefault(thing, {}).setdefault(target, {}).setdefault(instance_type, {})
        for name, amount in amounts:
            held[name] = held.get(name, 0) + amount

    def held(self, thing: K, place: Place) -> dict[Hashable, int] | None:
        """What is taken as one place sees it: its own sums, and the most of any instance type of every other target."""
        targets = self._by_thing.get(thing)
        if targets is None:
            return None
        total: dict[Hashable, int] = {}
        for target, by_type in targets.items():
            seen = [by_type[place[1]]] if target == place[0] and place[1] in by_type else []
            seen = list(by_type.values()) if target != place[0] else seen
            for name, amount in _most(seen).items():
                total[name] = total.get(name, 0) + amount
        return total

    def release(self, target: str, instance_type: str) -> bool:
        found = False
        for targets in self._by_thing.values():
            by_type = targets.get(target)
            if by_type is not None and by_type.pop(instance_type, None) is not None:
                found = True
                if not by_type:
                    del targets[target]
        return found


class Ledger:
    """Reservations of one round."""

    def __init__(self) -> None:
        self._published: dict[DeviceID, tuple[str, set[str]]] = {}
        self._devices_of: dict[str, dict[DeviceID, None]] = {}
        self._predicted: dict[Place, set[DeviceID]] = {}
        self._shares: _Charges[tuple[DeviceID, Place | None]] = _Charges()
        self._counters: _Charges[tuple[PoolKey, Place | None]] = _Charges()

    def taken(self, device: DeviceID, place: Place) -> bool:
        """Whether an exclusive device is out of the question for one instance type of a target (spec 6.1)."""
        if device.template:
            return device in self._predicted.get(place, ())
        holder = self._published.get(device)
        return holder is not None and (holder[0] != place[0] or place[1] in holder[1])

    def shares(self, device: DeviceID, place: Place) -> Amounts | None:
        """What is taken of each capacity of a shared device, in nano-units; None when nobody holds a share."""
        held = self._shares.held((device, place if device.template else None), place)
        return None if held is None else {str(name): amount for name, amount in held.items()}

    def counters(self, pool: PoolKey, place: Place) -> Mapping[Hashable, int]:
        """What is taken of a pool's counters, in whole units."""
        return self._counters.held((pool, place if pool[2] else None), place) or {}

    def commit(self, allocation: Allocation) -> None:
        """Reserve what an allocation was given. Administrative access reserves nothing."""
        for instance_type in allocation.instance_types:
            place = (allocation.target_id, instance_type)
            for _, grant in allocation.grants(instance_type):
                if not grant.admin_access:
                    self._reserve(grant, place)
            for pool, counter, amount in allocation.charges.get(instance_type, ()):
                self._counters.add((pool, place if pool[2] else None), place, ((counter, amount),))

    def release(self, target: str, instance_types: Iterable[str]) -> bool:
        """Give back what some instance types of a target hold; True when that frees something for other targets."""
        frees = False
        for instance_type in instance_types:
            self._predicted.pop((target, instance_type), None)
            frees |= self._shares.release(target, instance_type)
            frees |= self._counters.release(target, instance_type)
            for device in self._devices_of.get(target, ()):
                holder, types = self._published.get(device, ("", set()))
                if holder == target and instance_type in types:
                    frees = True
                    types.discard(instance_type)
                    if not types:
                        del self._published[device]
        return frees

    def _reserve(self, grant: DeviceGrant, place: Place) -> None:
        device = grant.id
        if grant.consumed is not None:
            amounts = ((name, quantity.nano) for name, quantity in grant.consumed)
            self._shares.add((device, place if device.template else None), place, amounts)
        elif device.template:
            held = self._predicted.setdefault(place, set())
            if device in held:
                raise AssertionError(f"device {device} is already allocated for instance type {place[1]}")
            held.add(device)
        else:
            holder, types = self._published.setdefault(device, (place[0], set()))
            if holder != place[0]:
                raise AssertionError(f"device {device} is already allocated for a different nodeclaim {holder}")
            if place[1] in types:
                raise AssertionError(f"device {device} is already allocated for instance type {place[1]}")
            types.add(place[1])
            self._devices_of.setdefault(place[0], {})[device] = None


def _most(by_type: Iterable[Mapping[Hashable, int]]) -> dict[Hashable, int]:
    most: dict[Hashable, int] = {}
    for amounts in by_type:
        for name, amount in amounts.items():
            most[name] = max(most.get(name, 0), amount)
    return most
