"""What a NodeClaim that isn't launched yet will most likely become."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from karpenter_linode.model import labels
from karpenter_linode.model.requirements import Requirements
from karpenter_linode.scheduling import resources as res

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from karpenter_linode.model.instance_type import InstanceType, Offering
    from karpenter_linode.model.karpenter import NodeClaim


def allocatable(instance_type: InstanceType) -> res.Resources:
    """Capacity less everything that is kept from pods, for the resources the plan has (spec 5.3)."""
    overhead = instance_type.overhead
    kept = res.total(
        map(res.from_resource_list, (overhead.kube_reserved, overhead.system_reserved, overhead.eviction_threshold)),
    )
    return res.subtract(res.from_resource_list(instance_type.capacity), kept)


def assume_launched(claim: NodeClaim, instance_types: Mapping[str, tuple[InstanceType, ...]]) -> NodeClaim:
    """The NodeClaim as it will look once launched: on the cheapest plan that it allows, is available and is big enough.

    The rule is the one of the launch itself (spec/linode-provider.md 4.2). A NodeClaim that allows nothing that can be
    bought now is returned as it is: it offers no room.
    """
    requirements = Requirements.from_specs(claim.spec.requirements)
    requests = res.from_resource_list(claim.spec.resources.requests)
    choices = [
        (offering.price, kind.name, kind, offering)
        for kind in instance_types.get(claim.metadata.labels.get(labels.NODEPOOL, ""), ())
        if res.fits(requests, allocatable(kind)) and Requirements.from_specs(kind.requirements).intersects(requirements)
        for offering in _open_offerings(kind, requirements)
    ]
    if not choices:
        return claim
    _, _, kind, offering = min(choices, key=lambda choice: choice[:2])
    return _as_launched(claim, kind, offering)


def _open_offerings(kind: InstanceType, requirements: Requirements) -> Iterable[Offering]:
    return (
        offering
        for offering in kind.offerings
        if offering.available and Requirements.from_specs(offering.requirements).intersects(requirements)
    )


def _as_launched(claim: NodeClaim, kind: InstanceType, offering: Offering) -> NodeClaim:
    single = {
        spec.key: spec.values[0]
        for spec in (*kind.requirements, *offering.requirements)
        if spec.operator == "In" and len(spec.values) == 1
    }
    metadata = replace(claim.metadata, labels={**single, **claim.metadata.labels})
    status = replace(claim.status, capacity=kind.capacity, allocatable=res.to_resource_list(allocatable(kind)))
    return replace(claim, metadata=metadata, status=status)
