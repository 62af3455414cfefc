"""Registration: the node has joined; tie it to its NodeClaim, once (spec/karpenter-lifecycle.md 1.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from karpenter_linode.lifecycle.conditions import of_node_claim, with_conditions
from karpenter_linode.lifecycle.effects import Count, Effect, LogLine, PublishEvent
from karpenter_linode.lifecycle.patches import object_patch
from karpenter_linode.lifecycle.step import Step
from karpenter_linode.model import labels
from karpenter_linode.model.condition_types import REGISTERED
from karpenter_linode.model.karpenter import NodeClaim
from karpenter_linode.model.meta import OwnerReference
from karpenter_linode.scheduling.taints import UNREGISTERED, carries, merge, without

if TYPE_CHECKING:
    from datetime import datetime

    from karpenter_linode.cluster.view import View
    from karpenter_linode.model.core import Node


def register(claim: NodeClaim, view: View, now: datetime) -> Step:
    """Look for the NodeClaim's Node and take it over.

    Taints, labels and annotations are copied in the same locked write that sets ``karpenter.sh/registered``: they are
    never copied again, so that a startup taint that its owner removed stays removed.
    """
    conditions = of_node_claim(claim, now)
    if conditions.status(REGISTERED) != "Unknown":
        return Step(with_conditions(claim, conditions.refresh(REGISTERED)))
    nodes = view.nodes_of(claim.status.provider_id)
    if not nodes:
        waiting = conditions.set_unknown(REGISTERED, "NodeNotFound", "Node not registered with cluster")
        return Step(with_conditions(claim, waiting))
    if len(nodes) > 1:
        broken = conditions.set_false(REGISTERED, "MultipleNodesFound", "Invariant violated, matched multiple nodes")
        return Step(with_conditions(claim, broken))
    node = nodes[0]
    registered = with_conditions(claim, conditions.set_true(REGISTERED))
    registered = replace(registered, status=replace(registered.status, node_name=node.name))
    effects: tuple[Effect, ...] = (
        *_taint_warning(claim, node),
        *object_patch(node, registered_node(node, claim), locked=True),
        LogLine("info", "registered nodeclaim", {"NodeClaim": claim.name, "Node": node.name}),
        Count(
            "karpenter_nodes_created_total",
            {
                "nodepool": claim.metadata.labels.get(labels.NODEPOOL, ""),
                "zone": claim.metadata.labels.get(labels.ZONE, ""),
            },
        ),
    )
    return Step(registered, effects)


def registered_node(node: Node, claim: NodeClaim) -> Node:
    """The Node as it is after registration."""
    taints = node.spec.taints
    if node.metadata.labels.get(labels.DO_NOT_SYNC_TAINTS) != "true":
        taints = merge(taints, (*claim.spec.taints, *claim.spec.startup_taints))
    metadata = replace(
        node.metadata,
        labels={**node.metadata.labels, **claim.metadata.labels, labels.REGISTERED: "true"},
        annotations={**node.metadata.annotations, **claim.metadata.annotations},
        finalizers=tuple(dict.fromkeys((*node.metadata.finalizers, labels.TERMINATION_FINALIZER))),
        owner_references=_owned(node, claim),
    )
    return replace(node, metadata=metadata, spec=replace(node.spec, taints=without(taints, (UNREGISTERED,))))


def _owned(node: Node, claim: NodeClaim) -> tuple[OwnerReference, ...]:
    owner = OwnerReference(NodeClaim.API_VERSION, NodeClaim.KIND, claim.name, claim.uid, block_owner_deletion=True)
    present = node.metadata.owner_references
    if any((item.api_version, item.kind, item.uid) == (owner.api_version, owner.kind, owner.uid) for item in present):
        return present
    return (*present, owner)


def _taint_warning(claim: NodeClaim, node: Node) -> tuple[Effect, ...]:
    if carries(node.spec.taints, UNREGISTERED) or labels.REGISTERED in node.metadata.labels:
        return ()
    error = "missing taint prevents registration-related race conditions on Karpenter-managed nodes"
    fields = {"NodeClaim": claim.name, "Node": node.name, "taint": labels.UNREGISTERED_TAINT, "error": error}
    return (
        LogLine("error", "node claim registration error", fields),
        PublishEvent(
            claim,
            "Warning",
            "UnregisteredTaintMissing",
            "Missing karpenter.sh/unregistered taint which prevents registration related race conditions on "
            "Karpenter-managed nodes",
            (claim.uid,),
        ),
    )
