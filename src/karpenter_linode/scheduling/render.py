"""From a planned claim to the NodeClaim object (spec/karpenter-scheduling.md 2.13 and 2.14)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from karpenter_linode.model import labels
from karpenter_linode.model.karpenter import NodeClaim, NodeClaimResources, NodeClaimSpec
from karpenter_linode.model.meta import ObjectMeta, OwnerReference
from karpenter_linode.model.requirement import Requirement, one_of
from karpenter_linode.scheduling import resources as res
from karpenter_linode.scheduling.plans import NO_PRICE
from karpenter_linode.scheduling.problem import PlannedNodeClaim, PodRef
from karpenter_linode.scheduling.template import SIMULATION_KEYS

if TYPE_CHECKING:
    from karpenter_linode.model.core import Pod
    from karpenter_linode.model.requirement_spec import NodeSelectorRequirement
    from karpenter_linode.model.requirements import Requirements
    from karpenter_linode.scheduling.open_claims import OpenClaim
    from karpenter_linode.scheduling.resources import Resources
    from karpenter_linode.scheduling.template import ClaimState, Template
    from karpenter_linode.scheduling.world import World

MAX_INSTANCE_TYPES: Final = 600
_OWNER_API: Final = "karpenter.sh/v1"


class Launch:
    """What a finished claim may be launched as (spec 2.11, 2.13).

    Args:
        claim: the claim; one that holds reservations is bought from those and nowhere else.
        id_label: the label that carries a reservation's id.

    Attributes:
        requirements: its own, and those of the reservations it holds.
        market: what can be bought under them.
        names: at most 600 instance types, cheapest first, ties by name.
        mask: the plans of these names.
    """

    __slots__ = ("market", "mask", "names", "requirements")

    def __init__(self, claim: OpenClaim, id_label: str) -> None:
        plans = claim.template.plans
        self.requirements = claim.state.requirements
        if claim.reserved:
            reserved = one_of(labels.CAPACITY_TYPE, labels.CAPACITY_RESERVED)
            self.requirements = self.requirements.replace(reserved).replace(Requirement(id_label, claim.reserved))
        self.market = plans.market(self.requirements)
        self.names = tuple(self.market.names(claim.plans)[:MAX_INSTANCE_TYPES])
        self.mask = claim.plans & plans.named(self.names)


class Renderer:
    """Writes NodeClaims; claims in equal states share what they have in common.

    Args:
        world: the finished simulation.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._written: dict[tuple[ClaimState, int, frozenset[str]], _Written] = {}

    def planned(self, claim: OpenClaim) -> PlannedNodeClaim:
        """A claim as part of the solution."""
        written = self._written_for(claim)
        return PlannedNodeClaim(
            id=claim.name,
            node_pool=claim.template.name,
            node_claim=self._node_claim(claim, written),
            instance_types=written.names,
            price=written.price,
            pods=tuple(pod_ref(pod) for pod in claim.pods),
            rejected=tuple(claim.rejected.values()),
        )

    def _node_claim(self, claim: OpenClaim, written: _Written) -> NodeClaim:
        template = claim.template
        spec = template.pool.spec.template.spec
        annotations = {**template.annotations, labels.MIN_VALUES_RELAXED: str(claim.relaxed_min_values).lower()}
        devices = self._world.devices
        if claim.devices and devices is not None and (drivers := devices.drivers(claim.name, written.names)):
            annotations[labels.REQUESTED_DRA_DRIVERS] = ",".join(drivers)
        requests = res.add(claim.total, least_overhead(template, claim.plans))
        return NodeClaim(
            metadata=ObjectMeta(
                generate_name=f"{template.name}-",
                labels=written.labels,
                annotations=annotations,
                owner_references=(
                    OwnerReference(_OWNER_API, "NodePool", template.name, template.pool.uid, block_owner_deletion=True),
                ),
            ),
            spec=NodeClaimSpec(
                taints=spec.taints,
                startup_taints=spec.startup_taints,
                requirements=written.requirements,
                resources=NodeClaimResources(res.to_resource_list(requests)),
                node_class_ref=spec.node_class_ref,
                termination_grace_period=spec.termination_grace_period,
                expire_after=spec.expire_after,
            ),
        )

    def _written_for(self, claim: OpenClaim) -> _Written:
        key = (claim.state, claim.plans, claim.reserved)
        found = self._written.get(key)
        if found is None:
            found = self._written[key] = _Written(claim, self._world.options.reservation_id_label)
        return found


class _Written:
    """What claims with equal requirements and plans have in common."""

    __slots__ = ("labels", "names", "price", "requirements")

    def __init__(self, claim: OpenClaim, id_label: str) -> None:
        template, plans = claim.template, claim.template.plans
        launch = Launch(claim, id_label)
        self.names = launch.names
        price = launch.market.cheapest(launch.mask)
        self.price = 0 if price == NO_PRICE else price
        requirements = launch.requirements.without(*sorted(SIMULATION_KEYS))
        own = requirements.find(labels.INSTANCE_TYPE)
        requirements = requirements.replace(
            Requirement(
                labels.INSTANCE_TYPE, frozenset(self.names), min_values=own.min_values if own is not None else None
            )
        )
        requirements = _with_capacity_types(requirements, launch)
        custom = _custom_labels(template, requirements, plans.well_known)
        for key, value in custom.items():
            item = requirements.get(key)
            if item.values and (item.gte is not None or item.lte is not None):
                # Bounds are written without their exclusions; the value that the label will have says it all.
                requirements = requirements.replace(one_of(key, value))
        self.requirements: tuple[NodeSelectorRequirement, ...] = tuple(
            msgspec.structs.replace(item, min_values=1) if item.min_values == 0 else item  # the CRD's least
            for item in requirements.specs()
        )
        self.labels = {**template.labels, **custom}


def least_overhead(template: Template, mask: int) -> Resources:
    """What daemons will take at least, whichever of the plans is launched; no daemons take nothing."""
    least: Resources | None = None
    for group in template.groups:
        if group.mask & mask:
            least = group.overhead if least is None else res.minimum(least, group.overhead)
    return least or {}


def pod_ref(pod: Pod) -> PodRef:
    """Which pod."""
    meta = pod.metadata
    return PodRef(meta.namespace, meta.name, meta.uid)


def _with_capacity_types(requirements: Requirements, launch: Launch) -> Requirements:
    kinds = {kind for kind, plans in launch.market.capacity_types.items() if kind and plans & launch.mask}
    if not kinds:
        return requirements
    own = requirements.find(labels.CAPACITY_TYPE)
    return requirements.replace(
        Requirement(labels.CAPACITY_TYPE, frozenset(kinds), min_values=own.min_values if own is not None else None)
    )


def _custom_labels(template: Template, requirements: Requirements, well_known: frozenset[str]) -> dict[str, str]:
    """One value for each label that neither the template nor the cloud sets."""
    values = {}
    for item in requirements:
        key = item.key
        if key in well_known or key in template.labels or key in labels.RESTRICTED_LABELS or _restricted(key):
            continue
        value = _any_value(item)
        if value:
            values[key] = value
    return values


def _restricted(key: str) -> bool:
    domain = key.split("/", 1)[0] if "/" in key else ""
    return domain == labels.KARPENTER_GROUP or domain.endswith("." + labels.KARPENTER_GROUP)


def _any_value(item: Requirement) -> str:
    """A value that meets a requirement: the first by name, or the smallest whole number."""
    if not item.complement:
        return min(item.values) if item.values else ""
    number = max(item.gte or 0, 0)
    while str(number) in item.values:
        number += 1
    return str(number) if item.lte is None or number <= item.lte else ""
