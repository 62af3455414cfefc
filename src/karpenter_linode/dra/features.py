"""Which optional parts of Dynamic Resource Allocation a cluster has switched on (spec/dra-allocation.md 1.1)."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Features(Struct, frozen=True):
    """Feature gates that change what an allocation may use.

    Args:
        taints: DRADeviceTaints; without it taints and tolerations have no effect.
        partitionable: DRAPartitionableDevices; without it devices that consume counters and slices with
            ``perDeviceNodeSelection`` are ignored.
        consumable: DRAConsumableCapacity; without it every device is exclusive, capacity requests have no effect and
            ``distinctAttribute`` is an unknown constraint.
    """

    taints: bool = False
    partitionable: bool = False
    consumable: bool = False


ALL_FEATURES: Final = Features(taints=True, partitionable=True, consumable=True)
