"""One pod in the eviction queue: evict, delete, wait or drop (spec/karpenter-lifecycle.md 2.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from karpenter_linode.lifecycle.drain import needs_force_delete
from karpenter_linode.lifecycle.effects import Count, Delete, Effect, LogLine, PublishEvent
from karpenter_linode.model.condition_types import DISRUPTION_REASON
from karpenter_linode.model.core import Node, Pod
from karpenter_linode.model.meta import find_condition
from karpenter_linode.model.timestamps import rfc3339
from karpenter_linode.scheduling.pods import is_active, is_evictable

if TYPE_CHECKING:
    from datetime import datetime

    from karpenter_linode.cluster.view import View

MULTIPLE_BUDGETS: Final = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
)
FORCEFUL: Final = "Forceful Termination"


class Eviction(Struct, frozen=True):
    """What to do with a queued pod.

    Args:
        action: ``evict`` asks for the eviction subresource; ``delete`` is carried out by the effects; ``wait`` tries
            again with back-off; ``drop`` is done.
    """

    action: Literal["evict", "delete", "wait", "drop"]
    effects: tuple[Effect, ...] = ()


def decide_eviction(pod: Pod | None, uid: str, deadline: datetime | None, view: View, now: datetime) -> Eviction:
    """Decide about a queued pod.

    Args:
        pod: the pod of that name as it is now, or None.
        uid: the UID it was queued under; another pod of that name is none of our business.
        deadline: when it must be gone, or None.
        view: the cluster.
        now: the time.
    """
    if pod is None or pod.uid != uid:
        return Eviction("drop")
    if deadline is not None and needs_force_delete(pod, deadline, now):
        return Eviction("delete", _force_deleted(pod, deadline, view, now))
    if not is_active(pod):
        return Eviction("drop")
    return Eviction("evict" if is_evictable(pod, now) else "wait")


def evicted(pod: Pod, view: View) -> tuple[Effect, ...]:
    """What to tell after a successful eviction."""
    reason = _reason(pod, view)
    return (
        PublishEvent(pod, "Normal", "Evicted", f"Evicted pod: {reason}", (pod.namespace, pod.name)),
        Count("karpenter_pods_drained_total", {"reason": reason}),
    )


def eviction_refused(pod: Pod, message: str, view: View) -> tuple[Effect, ...]:
    """What to tell when a budget forbids an eviction for now."""
    nodes = _node_of(pod, view)
    cause = "eviction does not support multiple PDBs" if message == MULTIPLE_BUDGETS else "evicting pod violates a PDB"
    text = f"Failed to drain node, {cause} (Pod={pod.key})"
    return tuple(PublishEvent(node, "Warning", "FailedDraining", text, (node.name,)) for node in nodes)


def _force_deleted(pod: Pod, deadline: datetime, view: View, now: datetime) -> tuple[Effect, ...]:
    granted = max(1, int((deadline - now).total_seconds()))
    message = (
        f"Deleting the pod to accommodate the terminationTime {rfc3339(deadline)} of the node. The pod was granted "
        f"{granted} seconds of grace-period of its {pod.spec.termination_grace_period_seconds} "
        "terminationGracePeriodSeconds. This bypasses the PDB of the pod and the do-not-disrupt annotation."
    )
    return (
        PublishEvent(pod, "Normal", "Disrupted", message, (pod.namespace, pod.name)),
        LogLine("debug", "deleting pod", {"Pod": pod.key}),
        Delete(Pod, pod.name, pod.namespace, pod.uid, granted),
        Count("karpenter_pods_drained_total", {"reason": _reason(pod, view)}),
    )


def _reason(pod: Pod, view: View) -> str:
    for node in _node_of(pod, view):
        claim = view.node_claim_of(node)
        if claim is not None:
            condition = find_condition(claim.status.conditions, DISRUPTION_REASON)
            return condition.reason if condition is not None and condition.status == "True" else FORCEFUL
    return ""


def _node_of(pod: Pod, view: View) -> tuple[Node, ...]:
    node = view.get(Node, pod.spec.node_name)
    return () if node is None else (node,)
