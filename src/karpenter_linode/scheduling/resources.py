"""Exact resource arithmetic on nano-units, and what a pod really asks for (spec/karpenter-scheduling.md 2.16).

A missing resource is zero. Quantities become integers here, once; no decision computes with anything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.model.quantity import BINARY_SI, DECIMAL_SI, NANO, Quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from karpenter_linode.model.core import Container, ContainerStatus, Pod, ResourceList
    from karpenter_linode.model.instance_type import InstanceType, Offering, Overhead

Resources = dict[str, int]

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"
HUGEPAGES_PREFIX: Final = "hugepages-"
_BINARY_NAMES: Final = (MEMORY, EPHEMERAL_STORAGE, "storage", HUGEPAGES_PREFIX)
_RESTART_ALWAYS: Final = "Always"


def from_resource_list(quantities: Mapping[str, Quantity]) -> Resources:
    """Quantities as nano-units."""
    return {name: quantity.nano for name, quantity in quantities.items()}


def to_resource_list(resources: Mapping[str, int]) -> ResourceList:
    """Nano-units as quantities, bytes in binary notation, sorted by name so that equal amounts are written alike."""
    return {
        name: Quantity(resources[name], BINARY_SI if name.startswith(_BINARY_NAMES) else DECIMAL_SI)
        for name in sorted(resources)
    }


def add(left: Mapping[str, int], right: Mapping[str, int]) -> Resources:
    """The sum; every key of either side."""
    total = dict(left)
    for name, amount in right.items():
        total[name] = total.get(name, 0) + amount
    return total


def total(lists: Iterable[Mapping[str, int]]) -> Resources:
    """The sum of many."""
    result: Resources = {}
    for resources in lists:
        for name, amount in resources.items():
            result[name] = result.get(name, 0) + amount
    return result


def subtract(left: Mapping[str, int], right: Mapping[str, int]) -> Resources:
    """``left - right`` for the keys of ``left``; may be negative."""
    return {name: amount - right.get(name, 0) for name, amount in left.items()}


def clamped_difference(left: Mapping[str, int], right: Mapping[str, int]) -> Resources:
    """``left - right`` for the keys of ``left``, never below zero."""
    return {name: max(0, amount - right.get(name, 0)) for name, amount in left.items()}


def maximum(left: Mapping[str, int], right: Mapping[str, int]) -> Resources:
    """The greater amount of each resource that either side has."""
    result = dict(left)
    for name, amount in right.items():
        result[name] = max(result.get(name, amount), amount)
    return result


def minimum(left: Mapping[str, int], right: Mapping[str, int]) -> Resources:
    """The smaller amount of each resource, where a missing one is zero; zeros are left out."""
    return {name: smaller for name in left if (smaller := min(left[name], right.get(name, 0))) != 0}


def fits(need: Mapping[str, int], room: Mapping[str, int]) -> bool:
    """Whether ``need`` fits into ``room``.

    A room that is overdrawn in any resource, asked for or not, takes nothing; a zero request always fits.
    """
    if any(amount < 0 for amount in room.values()):
        return False
    return all(amount <= room.get(name, 0) for name, amount in need.items())


def shortfalls(need: Mapping[str, int], room: Mapping[str, int]) -> tuple[tuple[str, int, int], ...]:
    """The resources that do not fit, sorted by name: ``(name, asked, room)`` in nano-units."""
    missing = {name for name, amount in need.items() if amount > room.get(name, 0)}
    missing |= {name for name, amount in room.items() if amount < 0}
    return tuple((name, need.get(name, 0), room.get(name, 0)) for name in sorted(missing))


def allocatable(instance_type: InstanceType, offering: Offering | None = None) -> Resources:
    """What a plan leaves for pods, in nano-units (spec/karpenter-scheduling.md 5.3).

    Capacity less everything that is kept from pods, for the resources that the capacity names; huge pages are taken
    from memory.

    Args:
        instance_type: the plan.
        offering: how it is bought, for what that changes of capacity and overhead.
    """
    capacity = from_resource_list(instance_type.capacity)
    kept = _kept(instance_type.overhead)
    if offering is not None:
        capacity |= from_resource_list(offering.capacity_override)
        if offering.overhead_override is not None:
            kept |= _kept(offering.overhead_override)
    left = subtract(capacity, kept)
    pages = sum(amount for name, amount in capacity.items() if name.startswith(HUGEPAGES_PREFIX))
    if pages and MEMORY in left:
        left[MEMORY] = max(0, left[MEMORY] - pages)
    return left


def _kept(overhead: Overhead) -> Resources:
    return total(
        map(from_resource_list, (overhead.kube_reserved, overhead.system_reserved, overhead.eviction_threshold))
    )


def pod_requests(pod: Pod) -> Resources:
    """What a pod needs of a node, in nano-units, with one unit of ``pods``.

    The larger of all containers together and of the start-up phases (each ordinary init container runs beside the
    sidecars started before it), pod-level requests over both, then the overhead of the runtime class. While a resize
    is under way the larger of the old and the new amount counts. A request that is absent takes its limit, as the
    API server would default it.
    """
    spec = pod.spec
    statuses = {status.name: status for status in pod.status.container_statuses}
    each = [_container_requests(container, statuses.get(container.name)) for container in spec.containers]
    running = each[0] if len(each) == 1 else total(each)
    needed = _with_start_up(pod, running) if spec.init_containers else running
    if spec.resources is not None:
        needed.update(_pod_level(spec.resources.requests))
    if spec.overhead:
        needed = add(needed, from_resource_list(spec.overhead))
    needed[PODS] = NANO
    return needed


def _with_start_up(pod: Pod, running: Resources) -> Resources:
    statuses = {status.name: status for status in pod.status.init_container_statuses}
    sidecars: Resources = {}
    peak: Resources = {}
    for container in pod.spec.init_containers:
        requests = _container_requests(container, None)
        if container.restart_policy == _RESTART_ALWAYS:
            requests = _container_requests(container, statuses.get(container.name))
            sidecars = add(sidecars, requests)
            running = add(running, requests)
            peak = maximum(peak, sidecars)
        else:
            peak = maximum(peak, add(sidecars, requests))
    return maximum(running, peak)


def _pod_level(requests: ResourceList) -> Resources:
    return {
        name: quantity.nano
        for name, quantity in requests.items()
        if name in {CPU, MEMORY} or name.startswith(HUGEPAGES_PREFIX)
    }


def _container_requests(container: Container, status: ContainerStatus | None) -> Resources:
    resources = container.resources
    requests = from_resource_list(resources.limits) if resources.limits else {}
    for name, quantity in resources.requests.items():
        requests[name] = quantity.nano
    if status is not None:
        requests = maximum(requests, from_resource_list(status.allocated_resources))
        if status.resources is not None:
            requests = maximum(requests, from_resource_list(status.resources.requests))
    return requests
