"""Candidates: nodes that a disruption method may consider, and why others are not (spec/karpenter-lifecycle.md 3.3)."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from karpenter_linode.cluster.view import is_supported, state_node_id
from karpenter_linode.model import labels
from karpenter_linode.model.core import Pod
from karpenter_linode.model.karpenter import NodePool
from karpenter_linode.model.reason import Reason
from karpenter_linode.model.selectors import selects
from karpenter_linode.scheduling.pods import is_disruptable, is_evictable, is_reschedulable
from karpenter_linode.scheduling.problem import StateNode
from karpenter_linode.scheduling.state_node import NodeView

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime

    from karpenter_linode.cluster.view import View
    from karpenter_linode.model.core import PodDisruptionBudget

POD_BLOCKS: Final = "pod-blocks-eviction"
_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_MAX_COST: Final = Fraction(10)
_MAX_DELETION_COST: Final = Decimal(2**40)  # beyond it, the clamp of the sum decides alone


class Candidate(Struct, frozen=True):
    """A node that may be disrupted.

    Args:
        state: the node and its NodeClaim, both present.
        pool: its NodePool.
        pods: pods that would have to move, ordered by key.
        cost: what moving them costs, without the constant 1; zero means that the node is empty.
    """

    state: StateNode
    pool: NodePool
    pods: tuple[Pod, ...]
    cost: Fraction

    @property
    def id(self) -> str:
        """The state node's id."""
        return state_node_id(self.state.node, self.state.node_claim)

    @property
    def name(self) -> str:
        """The node's name."""
        return NodeView(self.state).name

    @property
    def labels(self) -> dict[str, str]:
        """The node's labels."""
        return NodeView(self.state).labels

    @property
    def is_empty(self) -> bool:
        """Whether nothing on it is worth moving."""
        return self.cost <= 0


class Blocked(Struct, frozen=True):
    """A node that is no candidate. ``told`` says whether users are told by an event."""

    state: StateNode
    reason: Reason
    told: bool


class Survey(Struct, frozen=True):
    """Candidates ordered by id, and the nodes that are none."""

    candidates: tuple[Candidate, ...]
    blocked: tuple[Blocked, ...]


def survey_candidates(view: View, in_flight: Collection[str], now: datetime, *, eventual: bool = False) -> Survey:
    """Look at every node.

    Args:
        view: the cluster.
        in_flight: ids of state nodes that a command is removing already.
        now: the time.
        eventual: whether pods that block eviction don't matter on nodes with a termination grace period (drift).
    """
    candidates: list[Candidate] = []
    blocked: list[Blocked] = []
    for state in view.state_nodes(now):
        judged = _refusal(state, view, in_flight) or _with_pods(state, view, now, eventual=eventual)
        if isinstance(judged, Candidate):
            candidates.append(judged)
        else:
            blocked.append(judged)
    return Survey(tuple(candidates), tuple(blocked))


def _refusal(state: StateNode, view: View, in_flight: Collection[str]) -> Blocked | None:
    node = NodeView(state)
    claim = state.node_claim
    if state_node_id(state.node, claim) in in_flight:
        return _blocked(state, "already-disrupted", "candidate is already being disrupted", told=False)
    if claim is None or not is_supported(claim.spec.node_class_ref):
        return _blocked(state, "unmanaged", "node isn't managed by karpenter", told=False)
    if state.node is None:
        return _blocked(state, "no-node", "nodeclaim does not have an associated node")
    if not node.initialized:
        return _blocked(state, "not-initialized", "node isn't initialized")
    if state.marked_for_deletion or state.node.metadata.deletion_timestamp is not None:
        return _blocked(state, "deleting", "node is deleting or marked for deletion")
    if state.nominated:
        return _blocked(state, "nominated", "node is nominated for a pending pod")
    if node.annotations.get(labels.DO_NOT_DISRUPT) == "true":
        text = f'disruption is blocked through the "{labels.DO_NOT_DISRUPT}" annotation'
        return _blocked(state, "do-not-disrupt", text)
    if not node.node_pool:
        return _blocked(state, "no-pool", f"node doesn't have required label (label={labels.NODEPOOL})")
    if view.get(NodePool, node.node_pool) is None:
        return _blocked(state, "pool-missing", f"NodePool not found (NodePool={node.node_pool})")
    return None


def _with_pods(state: StateNode, view: View, now: datetime, *, eventual: bool) -> Candidate | Blocked:
    node = NodeView(state)
    pool = view.get(NodePool, node.node_pool)
    if state.node is None or state.node_claim is None or pool is None:
        return _blocked(state, "no-node", "nodeclaim does not have an associated node")
    pods = view.pods_on(state.node.name)
    patient = eventual and state.node_claim.spec.termination_grace_period is not None
    if not patient:
        reason = next(filter(None, (pod_block(pod, view.budgets_in(pod.namespace), now) for pod in pods)), None)
        if reason is not None:
            return Blocked(state, reason, told=True)
    moving = tuple(pod for pod in pods if is_reschedulable(pod))
    cost = sum((max(Fraction(0), eviction_cost(pod)) for pod in moving), Fraction(0))
    return Candidate(state, pool, moving, cost)


def pod_block(pod: Pod, budgets: Iterable[PodDisruptionBudget], now: datetime) -> Reason | None:
    """Why a pod forbids voluntary disruption of its node now, or None.

    Args:
        pod: a pod on the node.
        budgets: PodDisruptionBudgets of its namespace.
        now: the time.
    """
    if not is_disruptable(pod, now):
        return Reason(POD_BLOCKS, f'pod has "{labels.DO_NOT_DISRUPT}" annotation (Pod={pod.key})')
    if not is_evictable(pod, now):
        return None
    matching = [budget for budget in budgets if selects(budget.spec.selector, pod.metadata.labels)]
    if len(matching) > 1:
        names = " ".join(budget.key for budget in matching)
        return Reason(POD_BLOCKS, f"eviction does not support multiple PDBs (PodDisruptionBudget(s)=[{names}])")
    if matching and not _allows(matching[0], pod):
        return Reason(POD_BLOCKS, f"pdb prevents pod evictions (PodDisruptionBudget=[{matching[0].key}])")
    return None


def eviction_cost(pod: Pod) -> Fraction:
    """What moving a pod costs: 1, more for a higher deletion cost or priority, between -10 and 10."""
    cost = Fraction(1) + Fraction(pod.spec.priority or 0, 2**25)
    text = pod.metadata.annotations.get(_DELETION_COST)
    if text is not None:
        cost += Fraction(_deletion_cost(text), 2**27)
    return min(max(cost, -_MAX_COST), _MAX_COST)


def _deletion_cost(text: str) -> int:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return 0
    return int(max(min(number, _MAX_DELETION_COST), -_MAX_DELETION_COST)) if number.is_finite() else 0


def _allows(budget: PodDisruptionBudget, pod: Pod) -> bool:
    not_ready = any(item.type == "Ready" and item.status == "False" for item in pod.status.conditions)
    if budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow" and not_ready:
        return True
    return budget.status.disruptions_allowed > 0


def _blocked(state: StateNode, code: str, text: str, *, told: bool = True) -> Blocked:
    return Blocked(state, Reason(code, text, subject=f"node {NodeView(state).name}"), told)
