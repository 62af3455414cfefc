"""Attribute bindings: devices that will share a value nobody knows before launch (spec/dra-allocation.md 2.1)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from karpenter_linode.model.resource import AttributeBinding, DeviceID

DeviceKey = tuple[str, str, str]
"""Driver, pool, device. Predicted and published devices with equal names resolve alike."""
BoundDevices = dict[str, dict[DeviceKey, frozenset[DeviceKey]]]
"""Attribute -> device -> the devices that will share its value."""

NO_BINDINGS: Final[BoundDevices] = {}
_MIN_DEVICES: Final = 2


def bound_devices(bindings: Iterable[AttributeBinding]) -> BoundDevices:
    """The closure of an instance type's bindings: symmetric and transitive, apart for each attribute."""
    edges: dict[str, dict[DeviceKey, dict[DeviceKey, None]]] = {}
    for binding in bindings:
        if len(binding.devices) < _MIN_DEVICES:
            continue
        table = edges.setdefault(binding.attribute, {})
        keys = [device_key(device) for device in binding.devices]
        for device in keys:
            table.setdefault(device, {}).update(dict.fromkeys(keys))
    return {attribute: {device: _reachable(table, device) for device in table} for attribute, table in edges.items()}


def device_key(device: DeviceID) -> DeviceKey:
    """The names of a device, without whether it is predicted."""
    return (device.driver, device.pool, device.device)


def _reachable(table: Mapping[DeviceKey, Mapping[DeviceKey, None]], start: DeviceKey) -> frozenset[DeviceKey]:
    found = {start}
    queue = deque((start,))
    while queue:
        for neighbour in table[queue.popleft()]:
            if neighbour not in found:
                found.add(neighbour)
                queue.append(neighbour)
    return frozenset(found - {start})
