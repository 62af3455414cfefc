"""When an embedded world has come to rest: nothing is under way, and nothing will happen by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karpenter_linode.cluster.pending import pending_pods
from karpenter_linode.model.condition_types import INITIALIZED
from karpenter_linode.model.core import Node, Pod
from karpenter_linode.model.karpenter import NEVER, NodeClaim, NodePool
from karpenter_linode.model.meta import is_true
from karpenter_linode.scheduling.pods import is_provisionable, is_reschedulable, is_terminal

if TYPE_CHECKING:
    from karpenter_linode.cluster.view import View
    from karpenter_linode.scheduling.problem import Solution


def restless(view: View, solution: Solution | None, pending: int, machines: int) -> str:
    """What is still going on, in a word, or "" when nothing is.

    Args:
        view: the mirrored cluster of the controller.
        solution: the last scheduling decision, if there was one.
        pending: what the control plane, kubelets and drivers have still to do.
        machines: Linodes that exist.
    """
    claims = view.all(NodeClaim)
    if pending:
        return "the cluster is at work"
    if machines != len(claims):
        return "machines and NodeClaims differ"
    if any(claim.metadata.deletion_timestamp is not None for claim in claims):
        return "a NodeClaim is leaving"
    if any(not is_true(claim.status.conditions, INITIALIZED) for claim in claims):
        return "a NodeClaim is not initialized"
    if any(node.metadata.deletion_timestamp is not None for node in view.all(Node)):
        return "a node is leaving"
    if any(_will_go(claim, view) for claim in claims):
        return "a node is empty"
    return _undecided(view, solution)


def _will_go(claim: NodeClaim, view: View) -> bool:
    pool, node = view.node_pool_of(claim), view.node_of(claim)
    if pool is None or node is None or pool.spec.disruption.consolidate_after == NEVER:
        return False
    return not any(is_reschedulable(pod) for pod in view.pods_on(node.name))


def _undecided(view: View, solution: Solution | None) -> str:
    ignored = {pod.uid for pod, _ in pending_pods(view).ignored}
    refused = {item.pod.uid for item in solution.unplaced} if solution is not None else set()
    usable = bool(view.all(NodePool))
    for pod in view.all(Pod):
        if pod.spec.node_name or is_terminal(pod) or pod.uid in ignored or pod.uid in refused:
            continue
        if not is_provisionable(pod) or usable:
            return f"pod {pod.key} waits"
    return ""
