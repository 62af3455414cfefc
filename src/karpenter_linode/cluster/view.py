"""What deciders may ask of the mirrored cluster: the same questions work on live state and on a snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from karpenter_linode.cluster.table import Table
from karpenter_linode.model import core, karpenter, labels, resource, workloads
from karpenter_linode.model.condition_types import INSTANCE_TERMINATING
from karpenter_linode.model.meta import KubeObject, is_true
from karpenter_linode.scheduling.problem import StateNode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

T = TypeVar("T", bound=KubeObject)

CORE_KINDS: Final[tuple[type[KubeObject], ...]] = (
    karpenter.LinodeNodeClass,
    karpenter.NodePool,
    karpenter.NodeClaim,
    core.Node,
    core.Pod,
    core.Namespace,
    core.DaemonSet,
    core.PodDisruptionBudget,
    core.PersistentVolumeClaim,
    core.PersistentVolume,
    core.StorageClass,
    core.CSINode,
    core.VolumeAttachment,
)
DRA_KINDS: Final[tuple[type[KubeObject], ...]] = (resource.ResourceSlice, resource.DeviceClass, resource.ResourceClaim)
SPREAD_KINDS: Final[tuple[type[KubeObject], ...]] = (
    workloads.Service,
    workloads.ReplicationController,
    workloads.ReplicaSet,
    workloads.StatefulSet,
)
"""Read only where a default topology spread is set: clusters hold many of these, and each watch costs."""

_BY_PROVIDER_ID: Final = "provider-id"
_BY_NODE: Final = "node"
_BY_POOL: Final = "node-pool"
_BY_CLASS: Final = "node-class"
_BY_NAMESPACE: Final = "namespace"


def slice_nodes(item: resource.ResourceSlice) -> tuple[str, ...]:
    """Names of the nodes a slice belongs to: by ``spec.nodeName`` or by a Node owner (spec/dra-allocation.md 9.2)."""
    owners = (owner.name for owner in item.metadata.owner_references if owner.kind == "Node")
    return tuple(dict.fromkeys(name for name in (item.spec.node_name, *owners) if name))


def _claim_pool(claim: KubeObject) -> Iterable[str]:
    return (claim.metadata.labels.get(labels.NODEPOOL, ""),)


_INDEXES: Final[dict[type[KubeObject], dict[str, Any]]] = {
    core.Pod: {_BY_NODE: lambda pod: (pod.spec.node_name,)},
    core.Node: {_BY_PROVIDER_ID: lambda node: (node.spec.provider_id,)},
    core.PodDisruptionBudget: {_BY_NAMESPACE: lambda budget: (budget.namespace,)},
    core.VolumeAttachment: {_BY_NODE: lambda attachment: (attachment.spec.node_name,)},
    karpenter.NodeClaim: {
        _BY_PROVIDER_ID: lambda claim: (claim.status.provider_id,),
        _BY_POOL: _claim_pool,
        _BY_CLASS: lambda claim: (claim.spec.node_class_ref.name if is_supported(claim.spec.node_class_ref) else "",),
    },
    resource.ResourceSlice: {_BY_NODE: slice_nodes},
}


def mirrored_kinds(*, with_devices: bool, with_spread: bool) -> tuple[type[KubeObject], ...]:
    """The kinds to list and watch.

    Args:
        with_devices: whether DRA is on.
        with_spread: whether a default topology spread is set.
    """
    return (*CORE_KINDS, *(DRA_KINDS if with_devices else ()), *(SPREAD_KINDS if with_spread else ()))


def new_tables() -> dict[type[KubeObject], Table[Any]]:
    """An empty table for every kind that may be mirrored."""
    return {kind: Table(_INDEXES.get(kind)) for kind in mirrored_kinds(with_devices=True, with_spread=True)}


def is_supported(ref: karpenter.NodeClassRef) -> bool:
    """Whether a node class reference is one of this provider's, so that the object is ours to manage."""
    return ref.group == labels.LINODE_GROUP and ref.kind == karpenter.LinodeNodeClass.KIND


def is_managed_node(node: core.Node) -> bool:
    """Whether a Node is ours: its node class label says so."""
    return labels.LINODE_NODE_CLASS in node.metadata.labels


def is_deleted(node: core.Node | None, claim: karpenter.NodeClaim | None) -> bool:
    """Whether a state node is on its way out; a NodeClaim, if any, decides alone (spec/karpenter-lifecycle.md 4.3)."""
    if claim is None:
        return node is not None and node.metadata.deletion_timestamp is not None
    return claim.metadata.deletion_timestamp is not None or is_true(claim.status.conditions, INSTANCE_TERMINATING)


class View:
    """Read access to the mirrored cluster.

    Args:
        tables: one for each mirrored kind.
        marked: state node ids that a disruption command is removing.
        nominated: until when pods are expected on a state node, by state node id.
        nominations: where the last decision sent each pod, by UID: the NodeClaim's name or else the Node's.

    A state node's id is its NodeClaim's name, or the Node's where there is no NodeClaim, prefixed by the kind.
    """

    def __init__(
        self,
        tables: Mapping[type[KubeObject], Table[Any]],
        marked: frozenset[str] = frozenset(),
        nominated: Mapping[str, datetime] | None = None,
        nominations: Mapping[str, str] | None = None,
    ) -> None:
        self.nominations = dict(nominations or {})
        self._tables = tables
        self._marked = marked
        self._nominated = dict(nominated or {})

    def table(self, kind: type[T]) -> Table[T]:
        """The table of a kind."""
        return cast("Table[T]", self._tables[kind])

    def all(self, kind: type[T]) -> tuple[T, ...]:
        """All objects of a kind, ordered by key."""
        return self.table(kind).all()

    def get(self, kind: type[T], key: str) -> T | None:
        """One object by ``namespace/name`` or name, or None."""
        return self.table(kind).get(key)

    def nodes_of(self, provider_id: str) -> tuple[core.Node, ...]:
        """Nodes with exactly this provider id; none for the empty one."""
        return self.table(core.Node).by(_BY_PROVIDER_ID, provider_id)

    def node_claims_of(self, provider_id: str) -> tuple[karpenter.NodeClaim, ...]:
        """NodeClaims with exactly this provider id; none for the empty one."""
        return self.table(karpenter.NodeClaim).by(_BY_PROVIDER_ID, provider_id)

    def node_claim_of(self, node: core.Node) -> karpenter.NodeClaim | None:
        """The NodeClaim of a Node; None where there is none or more than one."""
        claims = self.node_claims_of(node.spec.provider_id)
        return claims[0] if len(claims) == 1 else None

    def node_of(self, claim: karpenter.NodeClaim) -> core.Node | None:
        """The Node of a NodeClaim; None where there is none or more than one."""
        nodes = self.nodes_of(claim.status.provider_id)
        return nodes[0] if len(nodes) == 1 else None

    def node_pool_of(self, claim: karpenter.NodeClaim) -> karpenter.NodePool | None:
        """The NodePool that a NodeClaim's label names."""
        return self.get(karpenter.NodePool, claim.metadata.labels.get(labels.NODEPOOL, ""))

    def node_claims_in_pool(self, node_pool: str) -> tuple[karpenter.NodeClaim, ...]:
        """NodeClaims labelled with a NodePool."""
        return self.table(karpenter.NodeClaim).by(_BY_POOL, node_pool)

    def node_claims_of_class(self, node_class: str) -> tuple[karpenter.NodeClaim, ...]:
        """NodeClaims that use a LinodeNodeClass."""
        return self.table(karpenter.NodeClaim).by(_BY_CLASS, node_class)

    def pods_on(self, node: str) -> tuple[core.Pod, ...]:
        """Pods bound to a node; none for the empty name."""
        return self.table(core.Pod).by(_BY_NODE, node)

    def slices_of(self, node: str) -> tuple[resource.ResourceSlice, ...]:
        """ResourceSlices that belong to a node."""
        return self.table(resource.ResourceSlice).by(_BY_NODE, node)

    def attachments_on(self, node: str) -> tuple[core.VolumeAttachment, ...]:
        """VolumeAttachments of a node."""
        return self.table(core.VolumeAttachment).by(_BY_NODE, node)

    def budgets_in(self, namespace: str) -> tuple[core.PodDisruptionBudget, ...]:
        """PodDisruptionBudgets of a namespace."""
        return self.table(core.PodDisruptionBudget).by(_BY_NAMESPACE, namespace)

    def is_nominated(self, state_node_id: str, now: datetime) -> bool:
        """Whether pods are expected on a state node."""
        until = self._nominated.get(state_node_id)
        return until is not None and now < until

    def is_marked(self, state_node_id: str) -> bool:
        """Whether a disruption command is removing a state node."""
        return state_node_id in self._marked

    def state_nodes(self, now: datetime) -> tuple[StateNode, ...]:
        """Every node and in-flight NodeClaim, ordered by id.

        A NodeClaim counts from the moment it exists, whether launched or not. Nodes that are ours but can't be told
        apart yet (no provider id, or not initialized and without a plan) don't speak for themselves.
        """
        states = [self._state(self._visible_node(claim), claim, now) for claim in self.all(karpenter.NodeClaim)]
        states += [
            self._state(node, None, now)
            for node in self.all(core.Node)
            if not self.node_claims_of(node.spec.provider_id) and not _is_unready_half(node)
        ]
        return tuple(states)

    def _visible_node(self, claim: karpenter.NodeClaim) -> core.Node | None:
        node = next(iter(self.nodes_of(claim.status.provider_id)), None)
        return None if node is None or _is_unready_half(node) else node

    def _state(self, node: core.Node | None, claim: karpenter.NodeClaim | None, now: datetime) -> StateNode:
        ident = state_node_id(node, claim)
        return StateNode(
            node=node,
            node_claim=claim,
            marked_for_deletion=self.is_marked(ident) or is_deleted(node, claim),
            nominated=self.is_nominated(ident, now),
        )


def state_node_id(node: core.Node | None, claim: karpenter.NodeClaim | None) -> str:
    """What a state node is called in nominations and marks: it must not change when a NodeClaim gets its node."""
    if claim is not None:
        return f"nodeclaim/{claim.name}"
    return f"node/{node.name}" if node is not None else ""


def _is_unready_half(node: core.Node) -> bool:
    if not is_managed_node(node):
        return False
    if not node.spec.provider_id:
        return True
    return node.metadata.labels.get(labels.INITIALIZED) != "true" and labels.INSTANCE_TYPE not in node.metadata.labels
