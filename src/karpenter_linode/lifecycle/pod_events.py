"""Pod events: when a node last gained or lost a pod; ``consolidateAfter`` counts from there (lifecycle spec 1.11)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from karpenter_linode.lifecycle.effects import Effect, Patch
from karpenter_linode.model.core import Node
from karpenter_linode.model.karpenter import NodeClaim
from karpenter_linode.model.timestamps import rfc3339
from karpenter_linode.scheduling.pods import is_terminal, is_terminating, owned_by_daemon_set

if TYPE_CHECKING:
    from datetime import datetime

    from karpenter_linode.cluster.view import View
    from karpenter_linode.model.core import Pod

_QUIET: Final = timedelta(seconds=10)  # shorter than the wait before a consolidation is validated


def node_touched(old: Pod | None, new: Pod | None) -> str:
    """The node that a change to a pod concerns, or "".

    Args:
        old: the pod before, None where it is new.
        new: the pod now, None where it is gone.
    """
    pod = new or old
    if pod is None or owned_by_daemon_set(pod) or not pod.spec.node_name:
        return ""
    if new is None:
        ended = old is None or is_terminal(old) or is_terminating(old)
        return "" if ended else pod.spec.node_name
    bound = old is None or not old.spec.node_name
    ends = old is not None and is_terminal(new) and not is_terminal(old)
    leaves = old is not None and is_terminating(new) and not is_terminating(old)
    return pod.spec.node_name if bound or ends or leaves else ""


def record_pod_event(node_name: str, view: View, now: datetime) -> list[Effect]:
    """Note a pod event on the NodeClaim of a node; several within ten seconds count once."""
    node = view.get(Node, node_name)
    claim = view.node_claim_of(node) if node is not None else None
    if claim is None:
        return []
    last = claim.status.last_pod_event_time
    if last is not None and now - last < _QUIET:
        return []
    return [Patch(NodeClaim, claim.name, {"status": {"lastPodEventTime": rfc3339(now)}}, subresource="status")]
