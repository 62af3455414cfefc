"""Expiration: a NodeClaim has a longest life, whatever else holds (spec/karpenter-lifecycle.md 1.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karpenter_linode.cluster.view import is_supported
from karpenter_linode.lifecycle.effects import Count, Delete, Effect, LogLine, Requeue
from karpenter_linode.lifecycle.step import NODE_CLAIMS_DISRUPTED, PODS_DISRUPTION_INITIATED, disruption_labels
from karpenter_linode.model.duration import parse_duration
from karpenter_linode.model.karpenter import NEVER, NodeClaim
from karpenter_linode.scheduling.pods import is_reschedulable

if TYPE_CHECKING:
    from datetime import datetime

    from karpenter_linode.cluster.view import View


def expire(claim: NodeClaim, view: View, now: datetime) -> list[Effect]:
    """Delete a NodeClaim that is too old, or come back exactly when it will be.

    Args:
        claim: the NodeClaim; its ``expireAfter`` was frozen at creation.
        view: the cluster, for the count of pods that are moved.
        now: the time.
    """
    created, expire_after = claim.metadata.creation_timestamp, claim.spec.expire_after
    if not is_supported(claim.spec.node_class_ref) or claim.metadata.deletion_timestamp is not None:
        return []
    if expire_after is None or expire_after == NEVER or created is None:
        return []
    expires = created + parse_duration(expire_after)
    if now < expires:
        return [Requeue(expires - now)]
    counted = disruption_labels(claim, "expired")
    return [
        Delete(NodeClaim, claim.name, uid=claim.uid),
        LogLine("debug", "deleting expired nodeclaim", {"NodeClaim": claim.name}),
        Count(NODE_CLAIMS_DISRUPTED, counted),
        Count(PODS_DISRUPTION_INITIATED, counted, reschedulable_count(claim, view)),
    ]


def reschedulable_count(claim: NodeClaim, view: View) -> int:
    """How many pods will have to move when a NodeClaim goes."""
    node = view.node_of(claim)
    return sum(map(is_reschedulable, view.pods_on(node.name))) if node is not None else 0
