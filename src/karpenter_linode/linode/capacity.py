"""What a plan's node has and what the system keeps of it (spec/linode-provider.md 3.4 and 3.5). Exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final

from karpenter_linode.model import labels
from karpenter_linode.model.instance_type import Overhead
from karpenter_linode.model.karpenter import KubeletConfiguration
from karpenter_linode.model.quantity import BINARY_SI, MILLI, Quantity

if TYPE_CHECKING:
    from karpenter_linode.model.core import ResourceList
    from karpenter_linode.model.linode import LinodeType

VM_MEMORY_OVERHEAD: Final = Fraction(75, 1000)
DEFAULT_MAX_PODS: Final = 110
_MIB: Final = 1 << 20
_DISK_SHARE: Final = Fraction(9, 10)  # what LKE's root file system leaves, until it's measured
_EVICTION_MIB: Final = 100
_KUBE_MIB_PER_POD: Final = 11
_KUBE_MIB_BASE: Final = 255
_MEMORY_AVAILABLE: Final = "memory.available"
_PERCENT: Final = 100
# Bands of millicores and the share that the kubelet keeps of each.
_CPU_BANDS: Final = (
    (1000, Fraction(6, 100)),
    (1000, Fraction(1, 100)),
    (2000, Fraction(5, 1000)),
    (None, Fraction(25, 10000)),
)
NO_KUBELET: Final = KubeletConfiguration()


def pod_limit(plan: LinodeType, kubelet: KubeletConfiguration = NO_KUBELET) -> int:
    """Pods that fit by count: ``maxPods`` or 110, at most ``podsPerCore`` for each vCPU where that is set."""
    limit = DEFAULT_MAX_PODS if kubelet.max_pods is None else kubelet.max_pods
    return min(kubelet.pods_per_core * plan.vcpus, limit) if kubelet.pods_per_core else limit


def capacity(
    plan: LinodeType,
    kubelet: KubeletConfiguration = NO_KUBELET,
    *,
    vm_memory_overhead: Fraction = VM_MEMORY_OVERHEAD,
    device_plugin_gpus: bool = True,
) -> ResourceList:
    """What a node of the plan will report.

    Args:
        plan: the plan.
        kubelet: kubelet settings of the NodeClass.
        vm_memory_overhead: share of the memory that the machine itself takes.
        device_plugin_gpus: whether GPUs appear as ``nvidia.com/gpu``; with DRA on they are devices instead.
    """
    result: ResourceList = {
        "cpu": Quantity.of(plan.vcpus),
        "memory": _mebibytes(plan.memory - _ceil(Fraction(plan.memory * _MIB) * vm_memory_overhead / _MIB)),
        "pods": Quantity.of(pod_limit(plan, kubelet)),
        "ephemeral-storage": _mebibytes(int(plan.disk * _DISK_SHARE)),
    }
    if device_plugin_gpus and plan.gpus > 0:
        result[labels.GPU_RESOURCE] = Quantity.of(plan.gpus)
    return result


def overhead(plan: LinodeType, memory: Quantity, kubelet: KubeletConfiguration = NO_KUBELET) -> Overhead:
    """What the system keeps.

    Args:
        plan: the plan.
        memory: memory capacity of the node, to which percentages of eviction thresholds refer.
        kubelet: kubelet settings of the NodeClass.

    Raises:
        QuantityError: a reservation or threshold is no quantity.
    """
    kube: ResourceList = {
        "cpu": Quantity(_reserved_millicores(plan.vcpus * 1000) * MILLI),
        "memory": _mebibytes(_KUBE_MIB_PER_POD * pod_limit(plan, kubelet) + _KUBE_MIB_BASE),
        "ephemeral-storage": _mebibytes(1024),
    }
    kube.update({name: Quantity.parse(text) for name, text in kubelet.kube_reserved.items()})
    system = {name: Quantity.parse(text) for name, text in kubelet.system_reserved.items()}
    return Overhead(kube, system, {"memory": _eviction_threshold(memory, kubelet)})


def _reserved_millicores(millicores: int) -> int:
    reserved, left = 0, millicores
    for span, rate in _CPU_BANDS:
        part = left if span is None else min(left, span)
        reserved += int(part * rate)
        left -= part
    return reserved


def _eviction_threshold(memory: Quantity, kubelet: KubeletConfiguration) -> Quantity:
    given = [
        _threshold(memory, signals[_MEMORY_AVAILABLE])
        for signals in (kubelet.eviction_hard, kubelet.eviction_soft)
        if _MEMORY_AVAILABLE in signals
    ]
    return max(given) if given else _mebibytes(_EVICTION_MIB)


def _threshold(memory: Quantity, text: str) -> Quantity:
    if not text.endswith("%"):
        return Quantity.parse(text)
    # The number before the sign has a quantity's grammar; 100% switches the signal off.
    share = Fraction(Quantity.parse(text[:-1]).nano, Quantity.of(_PERCENT).nano)
    return Quantity.of(0 if share == 1 else _ceil(memory.units * share), BINARY_SI)


def _mebibytes(amount: int) -> Quantity:
    return Quantity.of(amount * _MIB, BINARY_SI)


def _ceil(number: Fraction) -> int:
    return -(-number.numerator // number.denominator)
