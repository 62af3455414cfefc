"""``Problem`` in, ``Solution`` out: the whole input of a scheduling decision and the whole answer, as plain values.

A Problem can be written to a file and solved elsewhere with the same answer, byte for byte.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import Struct, field

from karpenter_linode.model.core import (
    CSINode,
    DaemonSet,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    ResourceList,
    StorageClass,
    TopologySpreadConstraint,
)
from karpenter_linode.model.instance_type import InstanceType
from karpenter_linode.model.karpenter import NodeClaim, NodePool
from karpenter_linode.model.reason import Reason
from karpenter_linode.model.resource import DeviceClass, ResourceClaim, ResourceSlice


class StateNode(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A node as the cluster state knows it: a Node, a NodeClaim, or both (spec/karpenter-scheduling.md 1.15)."""

    node: Node | None = None
    node_claim: NodeClaim | None = None
    marked_for_deletion: bool = False
    nominated: bool = False


class SchedulingOptions(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Settings that change scheduling (spec/karpenter-scheduling.md 1.1).

    Args:
        ignore_dra_requests: refuse pods with claims (the default of the controller).
        preference_policy: whether preferences count until they are relaxed.
        min_values_policy: whether minValues may be missed.
        reserved_capacity: the ReservedCapacity feature gate.
        allocation_steps: bound on the device search of one allocation, in tried devices.
        well_known_labels: label keys the provider adds to the well-known ones.
        unsupported_topology_keys: keys of a storage class's allowed topologies that the provider cannot place by.
        unsupported_provisioners: volume drivers whose volumes the provider cannot attach.
        scheduling_steps: bound on the whole simulation, in nodes and templates tried for a pod; pods that were not
            reached are left for the next one.
        reservation_id_label: label key of a reservation's id, "" where the provider has no reservations.
        reserved_offering_mode: whether a claim that could use a reservation but gets none is refused (provisioning).
        enforce_consolidate_after: keep running pods off nodes whose ``consolidateAfter`` has not passed
            (consolidation only).
        default_spread: constraints of pods that declare none (1.12); the pods of a Problem carry them already.
    """

    ignore_dra_requests: bool = True
    preference_policy: Literal["Respect", "Ignore"] = "Respect"
    min_values_policy: Literal["Strict", "BestEffort"] = "Strict"
    reserved_capacity: bool = True
    allocation_steps: int = 200_000
    well_known_labels: tuple[str, ...] = ()
    unsupported_topology_keys: tuple[str, ...] = ()
    unsupported_provisioners: tuple[str, ...] = ()
    scheduling_steps: int = 20_000_000
    reservation_id_label: str = ""
    reserved_offering_mode: Literal["Strict", "Fallback"] = "Strict"
    enforce_consolidate_after: bool = False
    default_spread: tuple[TopologySpreadConstraint, ...] = ()


class Problem(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Everything a scheduling decision may depend on.

    Args:
        pods: pods to place: pending ones and those that must leave deleting nodes.
        node_pools: usable or not; the solver drops static, deleting and not-ready ones with a Reason.
        instance_types: plans of each pool, by pool name.
        nodes: every node and in-flight NodeClaim; those marked for deletion give no room.
        bound_pods: pods with ``spec.nodeName``, finished and terminating ones too.
        deleting_pod_uids: pods on deleting nodes; their devices count as free.
        nominations: for pods that an earlier decision gave a place, by UID, the NodeClaim's name or else the Node's.
            They are tried there first.
        now: the time of the decision.
    """

    pods: tuple[Pod, ...] = ()
    node_pools: tuple[NodePool, ...] = ()
    instance_types: dict[str, tuple[InstanceType, ...]] = field(default_factory=dict)
    nodes: tuple[StateNode, ...] = ()
    bound_pods: tuple[Pod, ...] = ()
    daemon_sets: tuple[DaemonSet, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    resource_claims: tuple[ResourceClaim, ...] = ()
    device_classes: tuple[DeviceClass, ...] = ()
    resource_slices: tuple[ResourceSlice, ...] = ()
    persistent_volume_claims: tuple[PersistentVolumeClaim, ...] = ()
    persistent_volumes: tuple[PersistentVolume, ...] = ()
    storage_classes: tuple[StorageClass, ...] = ()
    csi_nodes: tuple[CSINode, ...] = ()
    deleting_pod_uids: frozenset[str] = frozenset()
    nominations: dict[str, str] = field(default_factory=dict)
    options: SchedulingOptions = field(default_factory=SchedulingOptions)
    now: datetime | None = None


class PodRef(Struct, frozen=True, order=True, omit_defaults=True, gc=False):
    """Which pod."""

    namespace: str
    name: str
    uid: str = ""

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class DeviceChoice(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A device that the simulation gave to a claim: on a planned node for one plan, or a published one."""

    request: str
    device: str
    instance_type: str = ""
    consumed_capacity: ResourceList = field(default_factory=dict)


class ClaimPlacement(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """What the simulation gave to one ResourceClaim (``namespace/name``)."""

    claim: str
    target: str
    devices: tuple[DeviceChoice, ...] = ()


class PlannedNodeClaim(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A NodeClaim to create.

    Args:
        id: stable id within the solution (``gpu-1``, ``gpu-2``), for explanations; not the object's name.
        node_pool: the NodePool it comes from.
        node_claim: the object to create, with ``generateName`` (spec/karpenter-scheduling.md 2.14).
        instance_types: allowed plans, cheapest first.
        price: nano-dollars per hour of the cheapest allowed plan.
        pods: pods it is for, in placement order.
        rejected: why other plans of the pool are not allowed.
    """

    id: str
    node_pool: str
    node_claim: NodeClaim
    instance_types: tuple[str, ...]
    price: int
    pods: tuple[PodRef, ...]
    rejected: tuple[Reason, ...] = ()


class ExistingPlacement(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Pods that fit on a node that exists or is being built; ``node`` is the Node's or else the NodeClaim's name."""

    node: str
    pods: tuple[PodRef, ...]
    node_claim: str = ""
    initialized: bool = True


class Unplaced(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A pod that found no place, with everything that was refused."""

    pod: PodRef
    reason: Reason


class Solution(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The answer. Equal problems give equal solutions, byte for byte."""

    new_node_claims: tuple[PlannedNodeClaim, ...] = ()
    existing: tuple[ExistingPlacement, ...] = ()
    unplaced: tuple[Unplaced, ...] = ()
    claims: tuple[ClaimPlacement, ...] = ()
    notes: tuple[Reason, ...] = ()
