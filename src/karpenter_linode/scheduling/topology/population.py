"""Pods that run already, by what selectors see of them: where each class of pods stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karpenter_linode.model import labels
from karpenter_linode.model.requirements import Requirements
from karpenter_linode.scheduling.pods import is_terminal, is_terminating

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

    from karpenter_linode.model.core import Pod, Taint
    from karpenter_linode.scheduling.shape import LabelClass
    from karpenter_linode.scheduling.state_node import NodeView
    from karpenter_linode.scheduling.topology.group import TopologyGroup
    from karpenter_linode.scheduling.topology.node_filter import NodeFilter


class NodeFacts:
    """Labels and taints of a node, for counting; nodes that are going away count too while their pods run."""

    __slots__ = ("_requirements", "going", "labels", "taints")

    def __init__(self, values: dict[str, str], taints: tuple[Taint, ...], *, going: bool) -> None:
        self.labels = values
        self.taints = taints
        self.going = going
        self._requirements: Requirements | None = None

    @property
    def requirements(self) -> Requirements:
        """Its labels as requirements."""
        if self._requirements is None:
            self._requirements = Requirements.from_labels(self.labels)
        return self._requirements

    def domain(self, key: str) -> str | None:
        """Its domain of a topology key."""
        return self.labels.get(key)


class Population:
    """Running pods on known nodes.

    Args:
        nodes: all nodes with their labels; the flag says whether it is going away.
        bound: pods by node name.
        excluded: UIDs of the pods that are being placed; they are not counted where they are.
        label_class: interns namespace and labels.
    """

    def __init__(
        self,
        nodes: Iterable[tuple[NodeView, dict[str, str], bool]],
        bound: Mapping[str, Sequence[Pod]],
        excluded: frozenset[str],
        label_class: Callable[[str, dict[str, str]], LabelClass],
    ) -> None:
        self.nodes: dict[str, NodeFacts] = {}
        for view, values, going in nodes:
            if view.node is not None:
                self.nodes[view.node.name] = NodeFacts(values, view.taints, going=going)
        self._classes: dict[LabelClass, dict[str, int]] = {}
        self._averse: list[tuple[Pod, NodeFacts]] = []
        for name, facts in self.nodes.items():
            for pod in bound.get(name, ()):
                if pod.uid in excluded or is_terminal(pod):
                    continue
                affinity = pod.spec.affinity
                if affinity is not None and affinity.pod_anti_affinity is not None:
                    self._averse.append((pod, facts))
                if is_terminating(pod):
                    continue  # it attracts nobody any more, but keeps others away until it is gone
                places = self._classes.setdefault(label_class(pod.namespace, pod.metadata.labels), {})
                places[name] = places.get(name, 0) + 1
        self._passing: dict[NodeFilter, frozenset[str]] = {}

    @property
    def averse(self) -> Iterator[tuple[Pod, NodeFacts]]:
        """Running pods with anti-affinity, those on their way out too, and their nodes."""
        return iter(self._averse)

    def seed(self, group: TopologyGroup, bits_of_host: Callable[[str], int]) -> None:
        """Give a new group the domains of the nodes that take part, and the pods it counts on them."""
        key, passing = group.topology_key, self._passing_nodes(group.key.node_filter)
        if key != labels.HOSTNAME:
            for name, facts in self.nodes.items():
                domain = facts.domain(key)
                if domain is not None and not facts.going and name in passing:
                    group.know(domain)
        for label_class, places in self._classes.items():
            if group.selects(label_class):
                for name, pods in places.items():
                    domain = self.nodes[name].domain(key)
                    if domain is not None and name in passing:
                        group.count(domain, pods, existing_bits=bits_of_host(domain) if group.is_hostname else 0)

    def _passing_nodes(self, node_filter: NodeFilter) -> Container[str]:
        """Names of the nodes that take part in a rule."""
        if node_filter.passes_all:
            return self.nodes
        found = self._passing.get(node_filter)
        if found is None:
            found = self._passing[node_filter] = frozenset(
                name for name, facts in self.nodes.items() if node_filter.passes(facts.requirements, facts.taints)
            )
        return found
