"""The desk where pods ask for devices: ResourceClaims on one side, the allocator on the other.

Nothing of allocation itself stands here; see ``karpenter_linode.dra`` (spec/dra-allocation.md 3).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.dra.allocation import Allocation, Target
from karpenter_linode.dra.allocator import Allocator
from karpenter_linode.dra.claims import claim_keys
from karpenter_linode.dra.extended import EXTENDED_RESOURCE_CLAIM, extended_resources, implicit_claim
from karpenter_linode.model import codec, labels
from karpenter_linode.model.reason import Reason
from karpenter_linode.scheduling.problem import ClaimPlacement, DeviceChoice

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from karpenter_linode.dra.allocation import ClaimAllocation
    from karpenter_linode.model.core import Pod
    from karpenter_linode.model.instance_type import InstanceType
    from karpenter_linode.model.requirements import Requirements
    from karpenter_linode.model.resource import ResourceClaim
    from karpenter_linode.scheduling.existing import ExistingNode
    from karpenter_linode.scheduling.problem import Problem
    from karpenter_linode.scheduling.resources import Resources
    from karpenter_linode.scheduling.shape import Shape

WRAPPER: Final = "allocating dynamic resources"
CLAIM_NOT_FOUND: Final = "claim-not-found"
DRA_OWNS_GPUS: Final = "dra-owns-gpus"


class DeviceDesk:
    """Claims of pods and the devices given to them in this simulation.

    Args:
        problem: claims, classes, slices and plans.
        initialized_nodes: names of nodes whose published devices can be trusted.
    """

    def __init__(self, problem: Problem, initialized_nodes: frozenset[str]) -> None:
        self._claims = {claim.key: claim for claim in problem.resource_claims}
        self._types = {pool: {item.name: item for item in types} for pool, types in problem.instance_types.items()}
        self._extended = extended_resources(problem.device_classes)
        self._made = {
            owner.uid: claim
            for claim in problem.resource_claims
            if claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM) == "true"
            for owner in claim.metadata.owner_references
            if owner.controller and owner.uid
        }
        uses = Counter(
            f"{pod.namespace}/{entry.resource_claim_name}"
            for pod in problem.pods
            for entry in pod.spec.resource_claims
            if entry.resource_claim_name
        )
        self._shared = {key for key, pods in uses.items() if pods > 1}
        self._allocator = Allocator(
            slices=problem.resource_slices,
            classes=problem.device_classes,
            claims=problem.resource_claims,
            initialized_nodes=initialized_nodes,
            deleting_pod_uids=problem.deleting_pod_uids,
            instance_types=problem.instance_types,
            steps=problem.options.allocation_steps,
        )
        self._resolved: dict[tuple[str, str, str], tuple[ResourceClaim, ...] | Reason] = {}
        self._committed: dict[str, list[Allocation]] = {}

    def has_claims(self, pod: Pod) -> bool:
        """Whether claims of a pod exist or are asked for by name, beyond what its spec's resources tell."""
        return bool(pod.spec.resource_claims) or pod.uid in self._made

    def claims_of(self, pod: Pod) -> tuple[ResourceClaim, ...] | Reason:
        """The claims of a pod, or why they are not all known yet; looked up once."""
        key = (pod.namespace, pod.name, pod.uid)
        found = self._resolved.get(key)
        if found is None:
            found = self._resolved[key] = self._look_up(pod)
        return found

    def shape_key(self, pod: Pod) -> Any:
        """What distinguishes pods by their claims: a claim of one's own by what it asks, a shared one by its name."""
        claims = self.claims_of(pod)
        if isinstance(claims, Reason):
            return claims.message
        return tuple(
            claim.key if claim.key in self._shared or claim.status.allocation is not None else codec.encode(claim.spec)
            for claim in claims
        )

    def on_node(
        self, node: ExistingNode, claims: tuple[ResourceClaim, ...], *, explain: bool = False
    ) -> Allocation | Reason:
        """Devices on a node that exists; predicted ones until it is initialized (spec 9.1)."""
        return self._allocator.allocate(self._node_target(node), claims, explain=explain)

    def on_claim(
        self,
        hostname: str,
        pool: str,
        requirements: Requirements,
        types: tuple[InstanceType, ...],
        claims: tuple[ResourceClaim, ...],
        *,
        explain: bool = False,
    ) -> Allocation | Reason:
        """Devices on a node that will be made, for each plan that it may become."""
        return self._allocator.allocate(Target(hostname, pool, requirements, types), claims, explain=explain)

    def commit(self, target: str, allocation: Allocation) -> None:
        """Keep an allocation; ``target`` is the name that the solution uses for the place."""
        if allocation.claims:
            self._allocator.commit(allocation)
            self._committed.setdefault(target, []).append(allocation)

    def release(self, hostname: str, names: Iterable[str]) -> None:
        """Give back what was kept for plans that a claim can no longer become."""
        self._allocator.release(hostname, names)

    def drivers(self, target: str, names: Iterable[str]) -> tuple[str, ...]:
        """Drivers whose predicted devices a planned claim relies on as one of these plans, sorted.

        Published devices do not count: their driver may never publish anything on the new node (spec 9.2).
        """
        plans = tuple(names)
        return tuple(
            sorted(
                {
                    grant.id.driver
                    for allocation in self._committed.get(target, ())
                    for name in plans
                    for _, grant in allocation.grants(name)
                    if grant.id.template
                }
            )
        )

    def placements(self, still_possible: Mapping[str, set[str]]) -> tuple[ClaimPlacement, ...]:
        """What every claim was given, by name.

        Args:
            still_possible: plans left, by name of the planned claim.
        """
        placements = [
            ClaimPlacement(claim.claim, target, _choices(claim, still_possible.get(target)))
            for target, allocations in self._committed.items()
            for allocation in allocations
            for claim in allocation.claims
        ]
        return tuple(sorted(placements, key=lambda item: item.claim))

    def served(self, requests: Resources) -> frozenset[str]:
        """The extended resources among some requests that a DeviceClass serves: devices come through a claim then."""
        return frozenset(name for name, amount in requests.items() if amount > 0 and name in self._extended)

    def owned_by_dra(self, shape: Shape) -> str | None:
        """The extended resource that a shape asks for although DRA owns such devices and no class serves it."""
        name = labels.GPU_RESOURCE
        return name if shape.requests.get(name) else None

    def _node_target(self, node: ExistingNode) -> Target:
        view = node.view
        known = self._types.get(view.node_pool, {}).get(view.instance_type)
        return Target(
            view.provider_id or node.name,
            view.node_pool,
            node.requirements,
            (known,) if known is not None else (),
            view.node.name if view.node is not None else "",
            use_templates=not view.initialized and known is not None,
        )

    def _look_up(self, pod: Pod) -> tuple[ResourceClaim, ...] | Reason:
        keys = claim_keys(pod)
        if isinstance(keys, Reason):
            return keys
        claims = []
        for key in keys:
            claim = self._claims.get(str(key))
            if claim is None:
                return Reason(CLAIM_NOT_FOUND, f'resourceclaim "{key}" not found', subject=f"ResourceClaim {key}")
            claims.append(claim)
        # Between kube-scheduler's claim and its binding the pod still looks unplaced; it needs no second device.
        implicit = self._made.get(pod.uid) or implicit_claim(pod, self._extended)
        return tuple(claims) if implicit is None else (*claims, implicit)


def _choices(claim: ClaimAllocation, names: set[str] | None) -> tuple[DeviceChoice, ...]:
    """The devices of a claim for each plan that is left; all of them on a node that exists."""
    return tuple(
        DeviceChoice(grant.request, str(grant.id), name if grant.id.template else "", dict(grant.consumed or ()))
        for name, grants in claim.devices.items()
        if names is None or name in names
        for grant in grants
    )
