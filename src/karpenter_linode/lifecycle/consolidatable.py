"""The ``Consolidatable`` condition: a node that was quiet long enough (spec/karpenter-lifecycle.md 3.1)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from karpenter_linode.cluster.view import is_supported
from karpenter_linode.lifecycle.conditions import of_node_claim, with_conditions
from karpenter_linode.lifecycle.effects import Effect, LogLine, Requeue
from karpenter_linode.lifecycle.patches import status_patch
from karpenter_linode.model.condition_types import CONSOLIDATABLE, INITIALIZED
from karpenter_linode.model.duration import format_duration, parse_duration
from karpenter_linode.model.karpenter import NEVER

if TYPE_CHECKING:
    from datetime import datetime

    from karpenter_linode.cluster.view import View
    from karpenter_linode.model.karpenter import NodeClaim


def judge_consolidatable(claim: NodeClaim, view: View, now: datetime) -> list[Effect]:
    """Set or remove ``Consolidatable``, and come back when the window ends.

    The window runs from the last pod event, or from initialization where there was none. Whether the pool's policy
    allows consolidation is not looked at here.
    """
    pool = view.node_pool_of(claim)
    if pool is None or claim.metadata.deletion_timestamp is not None or not is_supported(claim.spec.node_class_ref):
        return []
    if pool.spec.replicas is not None:
        return []
    consolidate_after = pool.spec.disruption.consolidate_after
    conditions = of_node_claim(claim, now)
    if consolidate_after == NEVER:
        return _removed(claim, now, {"reason": "consolidation is disabled"})
    if not conditions.is_true(INITIALIZED):
        return _removed(claim, now, {"reason": "nodeclaim isn't initialized"})
    window = parse_duration(consolidate_after)
    quiet_since = claim.status.last_pod_event_time or conditions.since(INITIALIZED) or now
    left = quiet_since + window - now
    if window and left > timedelta(0):
        fields = {
            "reason": "consolidateAfter window not yet elapsed",
            "consolidateAfter": consolidate_after,
            "timeSincePodEvent": format_duration(now - quiet_since),
        }
        return [*_removed(claim, now, fields), Requeue(left)]
    if conditions.is_true(CONSOLIDATABLE):
        return []
    marked = with_conditions(claim, conditions.set_true(CONSOLIDATABLE))
    return [
        *status_patch(claim, marked),
        LogLine("debug", "marking consolidatable", {"NodeClaim": claim.name, "NodePool": pool.name}),
    ]


def _removed(claim: NodeClaim, now: datetime, fields: dict[str, str]) -> list[Effect]:
    conditions = of_node_claim(claim, now)
    if not conditions.status(CONSOLIDATABLE):
        return []
    cleared = with_conditions(claim, conditions.clear(CONSOLIDATABLE))
    line = LogLine("debug", "removing consolidatable status condition", {"NodeClaim": claim.name, **fields})
    return [*status_patch(claim, cleared), line]
