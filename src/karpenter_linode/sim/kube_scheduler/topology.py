"""Filters that look at other pods: required pod (anti-)affinity and hard topology spread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.model.core import Namespace
from karpenter_linode.model.selectors import selects
from karpenter_linode.scheduling.taints import PREFER_NO_SCHEDULE, untolerated
from karpenter_linode.sim.kube_scheduler.filters import matches_node

if TYPE_CHECKING:
    from karpenter_linode.model.core import Node, Pod, PodAffinityTerm, TopologySpreadConstraint
    from karpenter_linode.sim.kube_scheduler.view import ClusterView, PodInfo
    from karpenter_linode.sim.store import Store

Domain = tuple[str, str]
AFFINITY: Final = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY: Final = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY: Final = "node(s) didn't satisfy existing pods anti-affinity rules"
SPREAD: Final = "node(s) didn't match pod topology spread constraints"
SPREAD_LABEL: Final = "node(s) didn't match pod topology spread constraints (missing required label)"


class TopologyFilter:
    """Rules between pods, gathered once for a pod and then asked for each node.

    Args:
        info: the pod to place.
        view: nodes and pods.
        store: knows namespaces.
    """

    def __init__(self, info: PodInfo, view: ClusterView, store: Store) -> None:
        self._pod = info.pod
        self._view = view
        self._store = store
        self._existing_anti = self._gather_existing_anti()
        affinity = info.pod.spec.affinity
        together = affinity.pod_affinity if affinity else None
        apart = affinity.pod_anti_affinity if affinity else None
        self._affinity = [
            (term, self._domains(term))
            for term in (together.required_during_scheduling_ignored_during_execution if together else ())
        ]
        self._anti = [
            (term, self._domains(term))
            for term in (apart.required_during_scheduling_ignored_during_execution if apart else ())
        ]
        self._first_of_its_kind = all(not domains for _, domains in self._affinity) and all(
            self._term_selects(term, self._pod, self._pod) for term, _ in self._affinity
        )
        self._spread = [
            (constraint, self._counts(constraint))
            for constraint in info.pod.spec.topology_spread_constraints
            if constraint.when_unsatisfiable == "DoNotSchedule"
        ]

    def refusal(self, node: Node) -> str:
        """Why the node's topology rules the pod out, or an empty text."""
        labels = node.metadata.labels
        for constraint, counts in self._spread:
            domain = labels.get(constraint.topology_key)
            if domain is None:
                return SPREAD_LABEL
            if self._skewed(constraint, counts, domain):
                return SPREAD
        for term, domains in self._affinity:
            value = labels.get(term.topology_key)
            if value is None or (value not in domains and not self._first_of_its_kind):
                return AFFINITY
        if any(labels.get(term.topology_key) in domains for term, domains in self._anti):
            return ANTI_AFFINITY
        if any(labels.get(key) == value for key, value in self._existing_anti):
            return EXISTING_ANTI_AFFINITY
        return ""

    def _gather_existing_anti(self) -> list[Domain]:
        """Domains that pods already placed keep to themselves."""
        found: dict[Domain, None] = {}
        for other, node in self._view.pods():
            affinity = other.pod.spec.affinity
            if affinity is None or affinity.pod_anti_affinity is None:
                continue
            for term in affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution:
                value = node.metadata.labels.get(term.topology_key)
                if value is not None and self._term_selects(term, other.pod, self._pod):
                    found[term.topology_key, value] = None
        return list(found)

    def _domains(self, term: PodAffinityTerm) -> set[str]:
        """Values of the term's key at which a matching pod runs."""
        return {
            node.metadata.labels[term.topology_key]
            for other, node in self._view.pods()
            if term.topology_key in node.metadata.labels and self._term_selects(term, self._pod, other.pod)
        }

    def _term_selects(self, term: PodAffinityTerm, owner: Pod, other: Pod) -> bool:
        """Whether a term of ``owner`` selects ``other``."""
        if not self._in_namespaces(term, owner, other) or not selects(term.label_selector, other.metadata.labels):
            return False
        mine, theirs = owner.metadata.labels, other.metadata.labels
        return all(theirs.get(key) == mine[key] for key in term.match_label_keys if key in mine) and all(
            theirs.get(key) != mine[key] for key in term.mismatch_label_keys if key in mine
        )

    def _in_namespaces(self, term: PodAffinityTerm, owner: Pod, other: Pod) -> bool:
        if not term.namespaces and term.namespace_selector is None:
            return owner.namespace == other.namespace
        if other.namespace in term.namespaces:
            return True
        namespace = self._store.find(Namespace, other.namespace)
        return (
            term.namespace_selector is not None
            and namespace is not None
            and selects(term.namespace_selector, namespace.metadata.labels)
        )

    def _counts(self, constraint: TopologySpreadConstraint) -> dict[str, int]:
        """Matching pods in each domain of the nodes that count."""
        counts: dict[str, int] = {}
        mine = self._pod.metadata.labels
        for info in self._view:
            value = info.node.metadata.labels.get(constraint.topology_key)
            if value is None or not self._counts_node(constraint, info.node):
                continue
            counts[value] = counts.get(value, 0) + sum(
                other.pod.namespace == self._pod.namespace
                and other.pod.metadata.deletion_timestamp is None
                and selects(constraint.label_selector, other.pod.metadata.labels)
                and all(other.pod.metadata.labels.get(k) == mine[k] for k in constraint.match_label_keys if k in mine)
                for other in info.pods.values()
            )
        return counts

    def _counts_node(self, constraint: TopologySpreadConstraint, node: Node) -> bool:
        if constraint.node_affinity_policy != "Ignore" and not matches_node(self._pod, node):
            return False
        hard = (taint for taint in node.spec.taints if taint.effect != PREFER_NO_SCHEDULE)
        return constraint.node_taints_policy != "Honor" or not untolerated(hard, self._pod.spec.tolerations)

    def _skewed(self, constraint: TopologySpreadConstraint, counts: dict[str, int], domain: str) -> bool:
        least = min(counts.values(), default=0)
        if constraint.min_domains is not None and len(counts) < constraint.min_domains:
            least = 0
        own = selects(constraint.label_selector, self._pod.metadata.labels)
        return counts.get(domain, 0) + own - least > constraint.max_skew
