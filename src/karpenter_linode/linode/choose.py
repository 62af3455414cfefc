"""Which plan a NodeClaim gets: the cheapest that it allows, that holds its pods and can be bought (4.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karpenter_linode.linode.capacity import allocatable
from karpenter_linode.model import labels
from karpenter_linode.model.reason import Reason
from karpenter_linode.model.requirements import Requirements
from karpenter_linode.scheduling.resources import fits, from_resource_list, shortfalls

if TYPE_CHECKING:
    from collections.abc import Iterable

    from karpenter_linode.model.instance_type import InstanceType
    from karpenter_linode.model.karpenter import NodeClaim

UNAVAILABLE = "all requested instance types were unavailable during launch"


def cheapest(node_claim: NodeClaim, instance_types: Iterable[InstanceType]) -> InstanceType | Reason:
    """The plan to buy, or why there is none.

    Equal prices are decided by fewer vCPUs, less memory, then name.

    Args:
        node_claim: requirements and resource requests count.
        instance_types: all plans, as ``build_instance_types`` returns them.
    """
    wanted = Requirements.from_specs(node_claim.spec.requirements)
    requests = from_resource_list(node_claim.spec.resources.requests)
    refused: list[Reason] = []
    best: tuple[tuple[int, int, int, str], InstanceType] | None = None
    for item in instance_types:
        reason = _refuse(item, wanted, requests)
        if reason is not None:
            refused.append(reason)
            continue
        price = min(_usable_prices(item, wanted))
        rank = (price, item.capacity["cpu"].nano, item.capacity["memory"].nano, item.name)
        if best is None or rank < best[0]:
            best = (rank, item)
    if best is not None:
        return best[1]
    return Reason("no-plan", UNAVAILABLE, subject=f"NodeClaim {node_claim.name}", children=tuple(refused))


def _refuse(item: InstanceType, wanted: Requirements, requests: dict[str, int]) -> Reason | None:
    subject = f"plan {item.name}"
    clash = wanted.incompatibility(Requirements.from_specs(item.requirements), labels.WELL_KNOWN)
    if clash is not None:
        return Reason("requirements", clash, subject=subject)
    room = from_resource_list(allocatable(item))
    if not fits(requests, room):
        lacking = ", ".join(name for name, _, _ in shortfalls(requests, room))
        return Reason("resources", f"too small in {lacking}", subject=subject)
    if not _usable_prices(item, wanted):
        return Reason("offering", "no available offering meets the requirements", subject=subject)
    return None


def _usable_prices(item: InstanceType, wanted: Requirements) -> list[int]:
    return [
        offering.price
        for offering in item.offerings
        if offering.available and wanted.compatible(Requirements.from_specs(offering.requirements), labels.WELL_KNOWN)
    ]
