"""The marks that a disruption command leaves on a node and its NodeClaim, and their removal (spec 3.2, 3.13)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from karpenter_linode.lifecycle.conditions import of_node_claim, with_conditions
from karpenter_linode.lifecycle.effects import Count, Delete, Effect, PublishEvent
from karpenter_linode.lifecycle.expiration import reschedulable_count
from karpenter_linode.lifecycle.patches import object_patch, status_patch
from karpenter_linode.lifecycle.step import NODE_CLAIMS_DISRUPTED, PODS_DISRUPTION_INITIATED, disruption_labels
from karpenter_linode.model.condition_types import DISRUPTION_REASON
from karpenter_linode.model.karpenter import NodeClaim
from karpenter_linode.scheduling.taints import DISRUPTED, carries

if TYPE_CHECKING:
    from datetime import datetime

    from karpenter_linode.cluster.view import View
    from karpenter_linode.model.core import Node


def mark_disrupted(node: Node, claim: NodeClaim, reason: str, now: datetime) -> list[Effect]:
    """Keep new pods off a node, and say why."""
    kept = tuple(taint for taint in node.spec.taints if taint.key != DISRUPTED.key)
    tainted = replace(node, spec=replace(node.spec, taints=(*kept, DISRUPTED)))
    conditions = of_node_claim(claim, now).set_true(DISRUPTION_REASON, reason, reason)
    return [
        *(() if carries(node.spec.taints, DISRUPTED) else object_patch(node, tainted, locked=True)),
        *status_patch(claim, with_conditions(claim, conditions)),
    ]


def unmark_disrupted(node: Node | None, claim: NodeClaim, now: datetime) -> list[Effect]:
    """Take the marks off again; a node that is being deleted keeps its taint."""
    effects: list[Effect] = []
    if node is not None and node.metadata.deletion_timestamp is None:
        kept = tuple(taint for taint in node.spec.taints if taint.key != DISRUPTED.key)
        effects += object_patch(node, replace(node, spec=replace(node.spec, taints=kept)), locked=True)
    conditions = of_node_claim(claim, now)
    if conditions.status(DISRUPTION_REASON):
        effects += status_patch(claim, with_conditions(claim, conditions.clear(DISRUPTION_REASON)))
    return effects


def delete_disrupted(node: Node, claim: NodeClaim, view: View, reason: str, policy: str) -> list[Effect]:
    """Let a disrupted NodeClaim go.

    Args:
        node: its node.
        claim: the NodeClaim.
        view: the cluster, for the count of pods that are moved.
        reason: ``Empty``, ``Underutilized`` or ``Drifted``.
        policy: the pool's consolidation policy in snake case, or "" for drift.
    """
    counted = disruption_labels(claim, reason.lower(), policy)
    return [
        Delete(NodeClaim, claim.name, uid=claim.uid),
        PublishEvent(node, "Normal", "DisruptionTerminating", f"Disrupting Node: {reason}", (node.uid, reason)),
        PublishEvent(claim, "Normal", "DisruptionTerminating", f"Disrupting NodeClaim: {reason}", (claim.uid, reason)),
        Count(NODE_CLAIMS_DISRUPTED, counted),
        Count(PODS_DISRUPTION_INITIATED, counted, reschedulable_count(claim, view)),
    ]
