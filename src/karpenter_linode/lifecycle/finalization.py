"""Finalization of a NodeClaim: nodes first, then the instance, then the object (spec/karpenter-lifecycle.md 1.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from karpenter_linode.lifecycle.conditions import of_node_claim, with_conditions
from karpenter_linode.lifecycle.effects import (
    CloudDelete,
    Count,
    Delete,
    Effect,
    LogLine,
    Observe,
    Patch,
    PublishEvent,
    Requeue,
)
from karpenter_linode.lifecycle.patches import object_patch, status_patch
from karpenter_linode.lifecycle.step import termination_grace_period
from karpenter_linode.lifecycle.timing import INSTANCE_POLL, NOW
from karpenter_linode.model import labels
from karpenter_linode.model.condition_types import INSTANCE_TERMINATING, REGISTERED
from karpenter_linode.model.core import Node
from karpenter_linode.model.karpenter import NodeClaim
from karpenter_linode.model.timestamps import rfc3339

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from karpenter_linode.cluster.view import View


def finalize(claim: NodeClaim, view: View, now: datetime, *, instance_gone: bool | None) -> list[Effect]:
    """Take a deleted NodeClaim apart.

    Args:
        claim: a NodeClaim with a deletion time.
        view: the cluster.
        now: the time.
        instance_gone: the cloud's answer to ``CloudDelete``: True once there is nothing left; None before it was asked.
    """
    if labels.TERMINATION_FINALIZER not in claim.metadata.finalizers:
        return []
    period = termination_grace_period(claim)
    if period is not None and not _deadline(claim):
        return _annotated(claim, period)
    if of_node_claim(claim, now).is_true(REGISTERED):
        nodes = view.nodes_of(claim.status.provider_id)
        if nodes:
            doomed = (node for node in nodes if node.metadata.deletion_timestamp is None)
            return [Delete(Node, node.name, uid=node.uid) for node in doomed]
    if not claim.status.provider_id:
        return _dropped(claim, claim, now)
    if instance_gone is None:
        return [CloudDelete(claim.status.provider_id)]
    terminating = with_conditions(claim, of_node_claim(claim, now).set_true(INSTANCE_TERMINATING))
    if not instance_gone:
        return [*status_patch(claim, terminating), Requeue(INSTANCE_POLL)]
    since = of_node_claim(terminating, now).since(INSTANCE_TERMINATING)
    return [
        *status_patch(claim, terminating),
        Observe(
            "karpenter_nodeclaims_instance_termination_duration_seconds",
            {"nodepool": claim.metadata.labels.get(labels.NODEPOOL, "")},
            now - (since or now),
        ),
        *_dropped(claim, terminating, now),
    ]


def _deadline(claim: NodeClaim) -> str:
    return claim.metadata.annotations.get(labels.TERMINATION_TIMESTAMP, "")


def _annotated(claim: NodeClaim, period: timedelta) -> list[Effect]:
    deleted = claim.metadata.deletion_timestamp
    if deleted is None:
        return []
    deadline = rfc3339(deleted + period)
    annotation = {labels.TERMINATION_TIMESTAMP: deadline}
    patch = Patch(
        NodeClaim,
        claim.name,
        {"metadata": {"annotations": annotation}},
        lock=claim.metadata.resource_version,
    )
    return [
        patch,
        LogLine("info", "annotated nodeclaim", {"NodeClaim": claim.name, **annotation}),
        PublishEvent(
            claim,
            "Warning",
            "TerminationGracePeriodExpiring",
            f"All pods will be deleted by {deadline}",
            (claim.name,),
        ),
        Requeue(NOW),
    ]


def _dropped(claim: NodeClaim, latest: NodeClaim, now: datetime) -> list[Effect]:
    finalizers = tuple(item for item in claim.metadata.finalizers if item != labels.TERMINATION_FINALIZER)
    released = replace(latest, metadata=replace(claim.metadata, finalizers=finalizers))
    pool = claim.metadata.labels.get(labels.NODEPOOL, "")
    deleted = claim.metadata.deletion_timestamp or now
    return [
        *object_patch(latest, released, locked=True),
        LogLine("info", "deleted nodeclaim", {"NodeClaim": claim.name, "provider-id": claim.status.provider_id}),
        Observe("karpenter_nodeclaims_termination_duration_seconds", {"nodepool": pool}, now - deleted),
        Count(
            "karpenter_nodeclaims_terminated_total",
            {
                "nodepool": pool,
                "capacity_type": claim.metadata.labels.get(labels.CAPACITY_TYPE, ""),
                "zone": claim.metadata.labels.get(labels.ZONE, ""),
            },
        ),
    ]
