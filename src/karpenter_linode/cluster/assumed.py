"""What a NodeClaim that isn't launched yet will most likely become."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from karpenter_linode.model import labels
from karpenter_linode.model.reason import Reason
from karpenter_linode.model.requirement import RequirementError
from karpenter_linode.scheduling import resources as res
from karpenter_linode.scheduling.plan_choice import PlanChooser

if TYPE_CHECKING:
    from collections.abc import Mapping

    from karpenter_linode.model.instance_type import InstanceType
    from karpenter_linode.model.karpenter import NodeClaim
    from karpenter_linode.scheduling.plan_choice import Choice


class Launches:
    """Tells what NodeClaims will look like once launched, by the launch's own rule.

    Args:
        instance_types: plans of each NodePool, by pool name.
    """

    def __init__(self, instance_types: Mapping[str, tuple[InstanceType, ...]]) -> None:
        self._instance_types = instance_types
        self._choosers: dict[str, PlanChooser] = {}

    def assume(self, claim: NodeClaim) -> NodeClaim:
        """The NodeClaim as it will look; as it is, without room, where nothing that it allows can be bought now.

        One with a requirement that cannot be read offers no room either, and does not stop the others.
        """
        pool = claim.metadata.labels.get(labels.NODEPOOL, "")
        chooser = self._choosers.get(pool)
        if chooser is None:
            chooser = self._choosers[pool] = PlanChooser(self._instance_types.get(pool, ()))
        try:
            choice = chooser.cheapest(claim)
        except RequirementError:
            return claim
        return claim if isinstance(choice, Reason) else _as_launched(claim, choice)


def _as_launched(claim: NodeClaim, choice: Choice) -> NodeClaim:
    kind = choice.instance_type
    single = {
        spec.key: spec.values[0]
        for spec in (*kind.requirements, *choice.offering.requirements)
        if spec.operator == "In" and len(spec.values) == 1
    }
    room = res.to_resource_list(res.allocatable(kind, choice.offering))
    metadata = replace(claim.metadata, labels={**single, **claim.metadata.labels})
    status = replace(claim.status, capacity={**kind.capacity, **choice.offering.capacity_override}, allocatable=room)
    return replace(claim, metadata=metadata, status=status)
