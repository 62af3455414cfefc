"""Amounts of resources as numbers of a metric."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karpenter_linode.model.quantity import NANO
from karpenter_linode.scheduling import resources as res

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from karpenter_linode.model.core import Pod


def amounts(resources: Mapping[str, int]) -> Iterator[tuple[str, float]]:
    """Resource types and amounts: CPUs as cores, memory in bytes, everything else in pieces.

    Args:
        resources: nano-units by resource name.
    """
    for name, nano in sorted(resources.items()):
        yield name.replace("-", "_").lower(), nano / NANO


def pod_limits(pod: Pod) -> res.Resources:
    """What a pod may use at most, in nano-units: all containers together, or more where its start needs more."""
    running = res.total(res.from_resource_list(container.resources.limits) for container in pod.spec.containers)
    sidecars: res.Resources = {}
    peak: res.Resources = {}
    for container in pod.spec.init_containers:
        limits = res.from_resource_list(container.resources.limits)
        if container.restart_policy == "Always":
            sidecars, running = res.add(sidecars, limits), res.add(running, limits)
            peak = res.maximum(peak, sidecars)
        else:
            peak = res.maximum(peak, res.add(sidecars, limits))
    return res.maximum(running, peak)
