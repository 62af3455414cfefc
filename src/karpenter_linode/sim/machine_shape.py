"""What the kubelet of an LKE node reports for a plan.

Computed beside the provider's prediction and not from it, so that a wrong prediction shows. Source of the numbers:
spec/linode-provider.md 3.4 and 3.5 (a node with 4 GiB reports 3788Mi).
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from karpenter_linode.model.core import ResourceList
from karpenter_linode.model.quantity import BINARY_SI, MILLI, Quantity

if TYPE_CHECKING:
    from karpenter_linode.model.linode import LinodeType

PODS: Final = 110
MEMORY_SHARE: Final = Fraction(925, 1000)
_DISK_SHARE: Final = Fraction(95, 100)
_MIB: Final = 1 << 20
_RESERVED_MIB_PER_POD: Final = 11
_RESERVED_MIB: Final = 255
_EVICTION_MIB: Final = 100
_RESERVED_DISK_MIB: Final = 1024
# Reserved millicores: this many of each band, in thousandths of the band.
_CPU_BANDS: Final = ((1000, 60), (1000, 10), (2000, 5))
_CPU_REST: Final = Fraction(25, 10_000)
_MILLICORES: Final = 1000


class MachineShape(Struct, frozen=True):
    """Resources of a node."""

    capacity: ResourceList
    allocatable: ResourceList


def shape_of(plan: LinodeType, memory_share: Fraction = MEMORY_SHARE) -> MachineShape:
    """Capacity and allocatable of a plan's node. GPUs are devices of the DRA driver, so none are listed.

    Args:
        plan: the plan; memory and disk in MiB.
        memory_share: what the machine's memory leaves of the plan's; less than predicted makes a node that disappoints.
    """
    memory = int(plan.memory * memory_share)
    disk = int(plan.disk * _DISK_SHARE)
    cpu = plan.vcpus * _MILLICORES
    kept = _RESERVED_MIB_PER_POD * PODS + _RESERVED_MIB + _EVICTION_MIB
    pods = Quantity.of(PODS)
    return MachineShape(
        capacity={"cpu": _milli(cpu), "memory": _mib(memory), "ephemeral-storage": _mib(disk), "pods": pods},
        allocatable={
            "cpu": _milli(cpu - _reserved_cpu(cpu)),
            "memory": _mib(max(0, memory - kept)),
            "ephemeral-storage": _mib(max(0, disk - _RESERVED_DISK_MIB)),
            "pods": pods,
        },
    )


def _reserved_cpu(millicores: int) -> int:
    reserved, left = 0, millicores
    for width, thousandths in _CPU_BANDS:
        band = min(left, width)
        reserved += band * thousandths // _MILLICORES
        left -= band
    return reserved + int(left * _CPU_REST)


def _milli(millicores: int) -> Quantity:
    return Quantity(millicores * MILLI)


def _mib(amount: int) -> Quantity:
    return Quantity.of(amount * _MIB, BINARY_SI)
