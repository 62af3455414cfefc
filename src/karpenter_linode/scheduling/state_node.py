"""A node as scheduling sees it: what its Node says and what its NodeClaim says (spec/karpenter-scheduling.md 1.15)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from karpenter_linode.model import labels
from karpenter_linode.model.meta import is_true
from karpenter_linode.model.quantity import NANO
from karpenter_linode.scheduling import resources as res
from karpenter_linode.scheduling.pods import is_terminal
from karpenter_linode.scheduling.taints import is_ephemeral, without

if TYPE_CHECKING:
    from collections.abc import Iterable

    from karpenter_linode.model.core import Node, Pod, Taint
    from karpenter_linode.model.karpenter import NodeClaim
    from karpenter_linode.scheduling.problem import StateNode
    from karpenter_linode.scheduling.resources import Resources

_TRUE = "true"


class NodeView:
    """Derived properties of a ``StateNode``; computed once, never changed.

    Args:
        state: a Node, a NodeClaim, or both.

    Attributes:
        managed: whether a NodeClaim stands behind it.
        registered: whether the Node speaks for itself; an unmanaged one always does.
        initialized: whether the node is ready for pods; an unmanaged one always is.
        name: the NodeClaim's name until the Node is registered, then the Node's.
        labels: labels of whichever object speaks for the node.
        annotations: annotations of whichever object speaks for the node.

    Raises:
        ValueError: the state has neither.
    """

    def __init__(self, state: StateNode) -> None:
        self.state = state
        self.node: Node | None = state.node
        self.node_claim: NodeClaim | None = state.node_claim
        self.managed = state.node_claim is not None
        own = state.node.metadata.labels if state.node is not None else {}
        self.registered = not self.managed or own.get(labels.REGISTERED) == _TRUE
        self.initialized = not self.managed or own.get(labels.INITIALIZED) == _TRUE
        spokesman = _spokesman(state, registered=self.registered)
        self.name = spokesman.name
        self.labels: dict[str, str] = spokesman.metadata.labels
        self.annotations: dict[str, str] = spokesman.metadata.annotations

    @property
    def hostname(self) -> str:
        """The hostname label, else the name."""
        return self.labels.get(labels.HOSTNAME) or self.name

    @property
    def node_pool(self) -> str:
        """The NodePool it belongs to, or "" ."""
        return self.labels.get(labels.NODEPOOL, "")

    @property
    def instance_type(self) -> str:
        """The plan it runs on, or ""."""
        return self.labels.get(labels.INSTANCE_TYPE, "")

    @cached_property
    def provider_id(self) -> str:
        """The cloud's id for it, or ""."""
        if self.node is not None and self.node.spec.provider_id:
            return self.node.spec.provider_id
        return self.node_claim.status.provider_id if self.node_claim is not None else ""

    @cached_property
    def taints(self) -> tuple[Taint, ...]:
        """Taints that pods must tolerate; while a managed node starts, those that will vanish are left out."""
        claim = self.node_claim
        if claim is not None and (self.node is None or not self.registered):
            taints = claim.spec.taints
        else:
            taints = self.node.spec.taints if self.node is not None else ()
        if claim is None or self.initialized:
            return taints
        return without((taint for taint in taints if not is_ephemeral(taint)), claim.spec.startup_taints)

    @cached_property
    def capacity(self) -> Resources:
        """Capacity in nano-units, with one unit of ``nodes``."""
        node = res.from_resource_list(self.node.status.capacity) if self.node is not None else {}
        claim = res.from_resource_list(self.node_claim.status.capacity) if self.node_claim is not None else {}
        return {**self._reported(node, claim), labels.NODES_RESOURCE: NANO}

    @cached_property
    def allocatable(self) -> Resources:
        """Allocatable in nano-units."""
        node = res.from_resource_list(self.node.status.allocatable) if self.node is not None else {}
        claim = res.from_resource_list(self.node_claim.status.allocatable) if self.node_claim is not None else {}
        return self._reported(node, claim)

    def available(self, bound_pods: Iterable[Pod]) -> Resources:
        """Allocatable less what pods on the node ask for; finished pods ask for nothing.

        Args:
            bound_pods: the pods of this node.
        """
        return res.subtract(self.allocatable, res.total(map(res.pod_requests, _unfinished(bound_pods))))

    def _reported(self, node: Resources, claim: Resources) -> Resources:
        if self.initialized:
            return node
        if self.node is None:
            return claim
        return {**node, **{name: amount for name, amount in claim.items() if not node.get(name)}}


def _spokesman(state: StateNode, *, registered: bool) -> Node | NodeClaim:
    if state.node is not None and registered:
        return state.node
    if state.node_claim is not None:
        return state.node_claim
    msg = "a state node needs a Node or a NodeClaim, found neither"
    raise ValueError(msg)


def is_marked_for_deletion(state: StateNode) -> bool:
    """Whether a node is on its way out, so that it gives no room and its pods need another (spec 1.6)."""
    if state.marked_for_deletion:
        return True
    claim = state.node_claim
    if claim is not None:
        return claim.metadata.deletion_timestamp is not None or is_true(claim.status.conditions, "InstanceTerminating")
    return state.node is not None and state.node.metadata.deletion_timestamp is not None


def _unfinished(pods: Iterable[Pod]) -> Iterable[Pod]:
    return (pod for pod in pods if not is_terminal(pod))
