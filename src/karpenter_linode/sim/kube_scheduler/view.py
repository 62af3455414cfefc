"""What the scheduler knows: nodes with the pods on them, those assumed included."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.model import codec
from karpenter_linode.scheduling.resources import Resources, add, from_resource_list, pod_requests, subtract
from karpenter_linode.sim.deletion import TERMINAL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from karpenter_linode.model.core import Node, Pod

HostPort = tuple[str, str, int]
_ANY_IP: Final = "0.0.0.0"  # noqa: S104  # a pod's wildcard host address, not one that we listen on


class PodInfo:
    """A pod with what the filters ask of it, computed once.

    ``shape`` is equal for pods that the filters, devices aside, cannot tell apart.
    """

    __slots__ = ("pod", "ports", "requests", "shape")

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self.requests = pod_requests(pod)
        self.ports = tuple(
            (port.host_ip or _ANY_IP, port.protocol, port.host_port)
            for container in (*pod.spec.containers, *pod.spec.init_containers)
            for port in container.ports
            if port.host_port
        )
        spec = pod.spec
        self.shape = codec.encode(
            (
                pod.namespace,
                sorted(pod.metadata.labels.items()),
                sorted(spec.node_selector.items()),
                spec.affinity,
                spec.tolerations,
                spec.topology_spread_constraints,
                sorted(self.requests.items()),
                self.ports,
            )
        )

    @property
    def has_topology(self) -> bool:
        """Whether other pods' places matter to this one."""
        affinity = self.pod.spec.affinity
        return bool(self.pod.spec.topology_spread_constraints) or (
            affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None)
        )


class NodeInfo:
    """A node and the pods on it. ``generation`` rises with every change, so that verdicts can be kept."""

    __slots__ = ("allocatable", "generation", "name", "node", "pods", "used")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.name = node.name
        self.allocatable: Resources = from_resource_list(node.status.allocatable)
        self.used: Resources = {}
        self.pods: dict[str, PodInfo] = {}
        self.generation = 0

    def set_node(self, node: Node) -> None:
        """Take in a new version of the Node."""
        self.node = node
        self.allocatable = from_resource_list(node.status.allocatable)
        self.generation += 1

    def add(self, info: PodInfo) -> None:
        """Put a pod on the node."""
        self.remove(info.pod.key)
        self.pods[info.pod.key] = info
        self.used = add(self.used, info.requests)
        self.generation += 1

    def remove(self, pod_key: str) -> None:
        """Take a pod off the node."""
        info = self.pods.pop(pod_key, None)
        if info is not None:
            self.used = subtract(self.used, info.requests)
            self.generation += 1

    @property
    def ports(self) -> set[HostPort]:
        """Host ports in use."""
        return {port for info in self.pods.values() for port in info.ports}


class ClusterView:
    """Nodes by name, and where each pod counts."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeInfo] = {}
        self._places: dict[str, str] = {}
        self._homeless: dict[str, dict[str, PodInfo]] = {}
        self._with_topology: dict[str, None] = {}

    def __iter__(self) -> Iterator[NodeInfo]:
        return iter([self.nodes[name] for name in sorted(self.nodes)])

    def set_node(self, node: Node) -> None:
        """Add or update a node; pods bound to it before it was known count from now on."""
        info = self.nodes.get(node.name)
        if info is not None:
            info.set_node(node)
            return
        info = self.nodes[node.name] = NodeInfo(node)
        for pod in self._homeless.pop(node.name, {}).values():
            info.add(pod)

    def remove_node(self, name: str) -> None:
        """Forget a node; its pods stay known until they are deleted."""
        info = self.nodes.pop(name, None)
        if info is not None and info.pods:
            self._homeless[name] = info.pods

    def place(self, info: PodInfo, node_name: str) -> None:
        """Count a pod on a node, bound or assumed."""
        self.remove_pod(info.pod.key)
        self._places[info.pod.key] = node_name
        if info.has_topology:
            self._with_topology[info.pod.key] = None
        node = self.nodes.get(node_name)
        if node is not None:
            node.add(info)
        else:
            self._homeless.setdefault(node_name, {})[info.pod.key] = info

    def remove_pod(self, pod_key: str) -> str:
        """Stop counting a pod; returns where it was counted, or an empty text."""
        node_name = self._places.pop(pod_key, "")
        self._with_topology.pop(pod_key, None)
        node = self.nodes.get(node_name)
        if node is not None:
            node.remove(pod_key)
        self._homeless.get(node_name, {}).pop(pod_key, None)
        return node_name

    @property
    def has_topology(self) -> bool:
        """Whether some counted pod has rules about other pods."""
        return bool(self._with_topology)

    def pods(self) -> Iterator[tuple[PodInfo, Node]]:
        """Every counted pod with its node, in order of names."""
        for info in self:
            for key in sorted(info.pods):
                yield info.pods[key], info.node


def takes_room(pod: Pod) -> bool:
    """Whether a bound pod counts on its node: until it has ended."""
    return bool(pod.spec.node_name) and pod.status.phase not in TERMINAL
