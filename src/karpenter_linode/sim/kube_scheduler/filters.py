"""Filters that look at one node and one pod. Each refusal is in kube-scheduler's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.model.core import Taint
from karpenter_linode.model.selectors import term_holds
from karpenter_linode.scheduling.taints import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, tolerates, untolerated

if TYPE_CHECKING:
    from collections.abc import Collection

    from karpenter_linode.model.core import Node, Pod
    from karpenter_linode.sim.kube_scheduler.view import HostPort, NodeInfo, PodInfo

_UNSCHEDULABLE: Final = Taint("node.kubernetes.io/unschedulable", "", NO_SCHEDULE)
_ANY_IP: Final = "0.0.0.0"  # noqa: S104  # a pod's wildcard host address, not one that we listen on
_PERCENT: Final = 100


def refusals(info: PodInfo, node: NodeInfo, served: Collection[str]) -> tuple[str, ...]:
    """Why a node cannot take a pod, or nothing. The first filter that refuses ends the list, as in Kubernetes.

    Args:
        info: the pod.
        node: the node.
        served: extended resources that come as devices where the node does not count them itself.
    """
    pod = info.pod
    if node.node.spec.unschedulable and not any(tolerates(item, _UNSCHEDULABLE) for item in pod.spec.tolerations):
        return ("node(s) were unschedulable",)
    hard = (taint for taint in node.node.spec.taints if taint.effect in {NO_SCHEDULE, NO_EXECUTE})
    taints = untolerated(hard, pod.spec.tolerations)
    if taints:
        return (f"node(s) had untolerated taint {{{taints[0].key}: {taints[0].value}}}",)
    if not matches_node(pod, node.node):
        return ("node(s) didn't match Pod's node affinity/selector",)
    if info.ports and _ports_clash(info, node):
        return ("node(s) didn't have free ports for the requested pod ports",)
    return _resource_refusals(info, node, served)


def matches_node(pod: Pod, node: Node) -> bool:
    """Whether the node selector and the required node affinity hold."""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    if required is None:
        return True
    return any(term_holds(term, labels, node.name) for term in required.node_selector_terms)


def _ports_clash(info: PodInfo, node: NodeInfo) -> bool:
    taken = node.ports
    return any(_clash(wanted, used) for wanted in info.ports for used in taken)


def _clash(wanted: HostPort, used: HostPort) -> bool:
    same_address = wanted[0] == used[0] or _ANY_IP in {wanted[0], used[0]}
    return same_address and wanted[1:] == used[1:]


def _resource_refusals(info: PodInfo, node: NodeInfo, served: Collection[str]) -> tuple[str, ...]:
    short = []
    for name, amount in sorted(info.requests.items()):
        if name in served and not node.allocatable.get(name):
            continue
        if amount and amount > node.allocatable.get(name, 0) - node.used.get(name, 0):
            short.append("Too many pods" if name == "pods" else f"Insufficient {name}")
    return tuple(short)


def score(info: PodInfo, node: NodeInfo) -> int:
    """How much the scheduler likes a node: soft taints and preferences first, then room that would be left."""
    soft = [taint for taint in node.node.spec.taints if taint.effect == PREFER_NO_SCHEDULE]
    liked = -_PERCENT * len(untolerated(soft, info.pod.spec.tolerations))
    affinity = info.pod.spec.affinity
    if affinity is not None and affinity.node_affinity is not None:
        for term in affinity.node_affinity.preferred_during_scheduling_ignored_during_execution:
            if term_holds(term.preference, node.node.metadata.labels, node.node.name):
                liked += term.weight
    free = 0
    for name in ("cpu", "memory"):
        room = node.allocatable.get(name, 0)
        left = room - node.used.get(name, 0) - info.requests.get(name, 0)
        free += max(0, left) * _PERCENT // room if room else 0
    return liked * 2 * _PERCENT + free
