"""Which plan a NodeClaim gets: the cheapest that it allows, that holds its pods and can be bought.

One rule for the launch that buys it and for the snapshot that has to guess it (spec/linode-provider.md 4.2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from karpenter_linode.model import labels
from karpenter_linode.model.instance_type import InstanceType, Offering
from karpenter_linode.model.reason import Reason
from karpenter_linode.model.requirements import Requirements
from karpenter_linode.scheduling import resources as res

if TYPE_CHECKING:
    from collections.abc import Iterable

    from karpenter_linode.model.karpenter import NodeClaim

UNAVAILABLE: Final = "all requested instance types were unavailable during launch"


class Choice(Struct, frozen=True):
    """A plan, and the cheapest of its offerings that the NodeClaim allows."""

    instance_type: InstanceType
    offering: Offering


class _Plan:
    """A plan read once, since many NodeClaims are asked about."""

    def __init__(self, source: InstanceType) -> None:
        self.source = source
        self.requirements = Requirements.from_specs(source.requirements)
        self.offerings = tuple(
            (offering, Requirements.from_specs(offering.requirements), res.allocatable(source, offering))
            for offering in source.offerings
            if offering.available
        )
        capacity = res.from_resource_list(source.capacity)
        self.size = (capacity.get(res.CPU, 0), capacity.get(res.MEMORY, 0), source.name)

    def offering_for(self, wanted: Requirements, requests: res.Resources) -> Offering | None:
        """The cheapest available offering that the NodeClaim allows and that leaves enough for its pods."""
        usable = [
            offering
            for offering, where, room in self.offerings
            if wanted.compatible(where, labels.WELL_KNOWN) and res.fits(requests, room)
        ]
        return min(usable, key=lambda offering: offering.price, default=None)


class PlanChooser:
    """Chooses among the plans of one NodePool.

    Args:
        instance_types: all of them, unavailable ones included.
    """

    def __init__(self, instance_types: Iterable[InstanceType]) -> None:
        self._plans = tuple(map(_Plan, instance_types))

    def cheapest(self, node_claim: NodeClaim) -> Choice | Reason:
        """The plan to buy, or why there is none.

        Equal prices are decided by fewer vCPUs, less memory, then name.

        Args:
            node_claim: requirements and resource requests count.

        Raises:
            RequirementError: a requirement of the NodeClaim cannot be read.
        """
        wanted = Requirements.from_specs(node_claim.spec.requirements)
        requests = res.from_resource_list(node_claim.spec.resources.requests)
        ranked = []
        for plan in self._plans:
            if not wanted.compatible(plan.requirements, labels.WELL_KNOWN):
                continue
            offering = plan.offering_for(wanted, requests)
            if offering is not None:
                ranked.append(((offering.price, *plan.size), Choice(plan.source, offering)))
        if ranked:
            return min(ranked, key=lambda item: item[0])[1]
        refused = tuple(_refusal(plan, wanted, requests) for plan in self._plans)
        return Reason("no-plan", UNAVAILABLE, subject=f"NodeClaim {node_claim.name}", children=refused)


def _refusal(plan: _Plan, wanted: Requirements, requests: res.Resources) -> Reason:
    subject = f"plan {plan.source.name}"
    clash = wanted.incompatibility(plan.requirements, labels.WELL_KNOWN)
    if clash is not None:
        return Reason("requirements", clash, subject=subject)
    rooms = [room for _, where, room in plan.offerings if wanted.compatible(where, labels.WELL_KNOWN)]
    if not rooms:
        return Reason("offering", "no available offering meets the requirements", subject=subject)
    lacking = ", ".join(name for name, _, _ in res.shortfalls(requests, rooms[0]))
    return Reason("resources", f"too small in {lacking}", subject=subject)
