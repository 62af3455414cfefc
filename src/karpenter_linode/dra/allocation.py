"""What the allocator is asked about and what it answers: targets, allocations, devices given to claims."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from karpenter_linode.model.instance_type import InstanceType
from karpenter_linode.model.quantity import Quantity
from karpenter_linode.model.reason import Reason
from karpenter_linode.model.requirements import EMPTY, Requirements
from karpenter_linode.model.resource import DeviceID

if TYPE_CHECKING:
    from collections.abc import Iterator


class Target(Struct, frozen=True):
    """A place that claims may be allocated on (spec/dra-allocation.md 3.3, adapter values).

    Args:
        id: stable identity within a round: a hostname placeholder, or the provider id of an existing node.
        node_pool: the NodePool, for attribute bindings.
        requirements: of the NodeClaim, merged with those of the pod; for an existing node, its labels.
        instance_types: current options in the NodeClaim's order; for an existing node its own plan, empty when unknown.
        node_name: the Node's name; empty for a NodeClaim that is not a node yet.
        use_templates: whether predicted devices stand in for published ones. False for initialized nodes.
    """

    id: str
    node_pool: str
    requirements: Requirements = EMPTY
    instance_types: tuple[InstanceType, ...] = ()
    node_name: str = ""
    use_templates: bool = True


CounterCharge = tuple[tuple[str, str, bool], tuple[str, str], int]
"""Pool (driver, name, predicted), counter (set, name), and whole units drawn from it."""


class DeviceGrant(Struct, frozen=True, gc=False):
    """A device given to a claim.

    Args:
        id: the device; ``template`` tells a predicted one.
        request: ``request``, or ``request/subrequest`` for an alternative.
        consumed: what a share takes of each capacity; None for a device that is not shared.
        admin_access: whether the device stays free for others.
    """

    id: DeviceID
    request: str
    consumed: tuple[tuple[str, Quantity], ...] | None = None
    admin_access: bool = False


class ClaimAllocation(Struct, frozen=True, gc=False):
    """One claim's devices on one target, for each instance type that can carry it.

    Args:
        claim: ``namespace/name``.
        target_id: where.
        devices: devices by instance type name, in the order of the allocation.
        contributed: what the devices' own node selection adds to the requirements, by instance type.
        bound: the claim can be used on this target alone (predicted or node-local devices).
    """

    claim: str
    target_id: str
    devices: dict[str, tuple[DeviceGrant, ...]]
    contributed: dict[str, Requirements]
    bound: bool

    @property
    def total_requirements(self) -> Requirements:
        """The intersection over all instance types: where the claim can be used."""
        total = EMPTY
        for requirements in self.contributed.values():
            total = total.merge(requirements)
        return total


class Allocation(Struct, frozen=True, gc=False):
    """A way to give a pod's claims devices on a target. Nothing is reserved before ``Allocator.commit``.

    Args:
        target_id: the target.
        instance_types: names of the instance types that can carry the claims, in the target's order.
        requirements: the target's requirements, narrowed by the devices and by claims that are allocated already.
        claims: newly allocated claims; empty when nothing was left to allocate.
        rejected: one Reason for each instance type that cannot.
        charges: what the new devices draw from counters, by instance type; for ``Allocator.commit``.
    """

    target_id: str
    instance_types: tuple[str, ...]
    requirements: Requirements = EMPTY
    claims: tuple[ClaimAllocation, ...] = ()
    rejected: tuple[Reason, ...] = ()
    charges: dict[str, tuple[CounterCharge, ...]] = field(default_factory=dict)

    def grants(self, instance_type: str) -> Iterator[tuple[str, DeviceGrant]]:
        """Every newly given device for one instance type, with its claim."""
        for claim in self.claims:
            for grant in claim.devices.get(instance_type, ()):
                yield claim.claim, grant
