"""Liveness: NodeClaims that don't get anywhere are given up (spec/karpenter-lifecycle.md 1.5)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from karpenter_linode.lifecycle.conditions import of_node_claim
from karpenter_linode.lifecycle.effects import Count, Delete, Effect, LogLine, Requeue
from karpenter_linode.lifecycle.step import (
    NODE_CLAIMS_DISRUPTED,
    LifecycleSettings,
    Step,
    annotated_duration,
    disruption_labels,
)
from karpenter_linode.model import labels
from karpenter_linode.model.condition_types import INITIALIZED, LAUNCHED, REGISTERED
from karpenter_linode.model.duration import format_duration
from karpenter_linode.model.karpenter import NodeClaim

if TYPE_CHECKING:
    from datetime import datetime

    from karpenter_linode.cluster.view import View


def check_liveness(claim: NodeClaim, view: View, settings: LifecycleSettings, now: datetime) -> Step:
    """Delete a NodeClaim that took too long, or come back when it will have.

    Clocks run from the conditions' transition times; a node has its time to join once its launch is on record, which an
    API server that was away may have delayed by hours. A NodePool may set its own limits by annotation: for
    registration in place of the default, and for initialization, which has none by default.
    """
    conditions = of_node_claim(claim, now)
    pool = view.node_pool_of(claim)
    annotations = pool.metadata.annotations if pool is not None else {}
    if not conditions.is_true(LAUNCHED):
        waiting, limit, reason = LAUNCHED, settings.launch_timeout, "launch_timeout"
    elif not conditions.is_true(REGISTERED):
        limit = annotated_duration(annotations, labels.REGISTRATION_TIMEOUT) or settings.registration_timeout
        waiting, reason = REGISTERED, "registration_timeout"
    elif not conditions.is_true(INITIALIZED) and labels.INITIALIZATION_TIMEOUT in annotations:
        allowed = annotated_duration(annotations, labels.INITIALIZATION_TIMEOUT)
        if allowed is None:
            return Step(claim)
        waiting, limit, reason = REGISTERED, allowed, "initialization_timeout"
    else:
        return Step(claim)
    moments = [moment for kind in (waiting, LAUNCHED) if (moment := conditions.since(kind)) is not None]
    since = max(moments, default=None)
    left = timedelta(0) if since is None else since + limit - now
    if left > timedelta(0):
        return Step(claim, (Requeue(left),))
    return Step(claim, _given_up(claim, limit, reason))


def _given_up(claim: NodeClaim, limit: timedelta, reason: str) -> tuple[Effect, ...]:
    fields = {"NodeClaim": claim.name, "timeout": format_duration(limit), "reason": reason}
    return (
        Delete(NodeClaim, claim.name, uid=claim.uid),
        LogLine("debug", "terminating due to timeout", fields),
        Count(NODE_CLAIMS_DISRUPTED, disruption_labels(claim, reason)),
    )
