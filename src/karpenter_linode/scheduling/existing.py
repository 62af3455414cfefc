"""Nodes that exist or are being built, as bit positions in the order in which pods try them.

A label value, a toleration list and an amount of room are masks; only nodes left after ``&`` are looked at one by one
(spec/karpenter-scheduling.md 2.5).
"""

from __future__ import annotations

from datetime import timedelta
from itertools import takewhile
from typing import TYPE_CHECKING

from karpenter_linode.model import labels
from karpenter_linode.model.duration import DurationError, parse_duration
from karpenter_linode.model.karpenter import NEVER
from karpenter_linode.model.meta import find_condition
from karpenter_linode.model.requirements import Requirements
from karpenter_linode.scheduling import resources as res
from karpenter_linode.scheduling.pods import is_terminal, owned_by_daemon_set
from karpenter_linode.scheduling.ports import HostPort, host_ports
from karpenter_linode.scheduling.state_node import NodeView
from karpenter_linode.scheduling.taints import untolerated

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from karpenter_linode.model.core import CSINode, Pod, Taint, Toleration
    from karpenter_linode.model.karpenter import NodePool
    from karpenter_linode.model.requirement import Requirement
    from karpenter_linode.scheduling.daemons import Daemon
    from karpenter_linode.scheduling.problem import StateNode
    from karpenter_linode.scheduling.resources import Resources
    from karpenter_linode.scheduling.selection import Selection
    from karpenter_linode.scheduling.shape import Shape
    from karpenter_linode.scheduling.volumes import VolumeIndex


class ExistingNode:
    """A node that pods may join.

    Args:
        index: its position; bit ``1 << index`` of every mask over nodes.
        view: the node.
        bound: pods on it.
        daemons: DaemonSets of the cluster.
        volume_limits: attachments its drivers allow.
    """

    __slots__ = (
        "_requirements",
        "bit",
        "daemon_reserve",
        "free",
        "index",
        "labels",
        "name",
        "pods",
        "ports",
        "view",
        "volume_limits",
        "volumes",
    )

    def __init__(
        self,
        index: int,
        view: NodeView,
        bound: Sequence[Pod],
        daemons: Sequence[Daemon],
        volume_limits: Mapping[str, int],
    ) -> None:
        self.index = index
        self.bit = 1 << index
        self.view = view
        self.name = view.name
        self.labels = node_labels(view)
        self._requirements: Requirements | None = None
        active = [pod for pod in bound if not is_terminal(pod)]
        self.daemon_reserve = self._reserve(active, daemons)
        self.free = res.subtract(view.available(active), self.daemon_reserve)
        self.ports: tuple[HostPort, ...] = tuple(port for pod in active for port in host_ports(pod))
        self.volumes: frozenset[tuple[str, str]] = frozenset()
        self.volume_limits = volume_limits
        self.pods: list[Pod] = []

    @property
    def requirements(self) -> Requirements:
        """Its labels as requirements."""
        if self._requirements is None:
            self._requirements = Requirements.from_labels(self.labels)
        return self._requirements

    @property
    def hostname(self) -> str:
        """Its hostname domain."""
        return self.labels[labels.HOSTNAME]

    def _reserve(self, active: Sequence[Pod], daemons: Sequence[Daemon]) -> Resources:
        """Room kept for daemons that will still come; never negative (spec 2.5)."""
        if not daemons:
            return {}
        expected = res.total(
            daemon.requests for daemon in daemons if daemon.runs_on(self.requirements, self.view.taints)
        )
        there = res.total(res.pod_requests(pod) for pod in active if owned_by_daemon_set(pod))
        return res.clamped_difference(expected, there)


class ExistingNodes:
    """All of them, initialized ones first, then by name.

    A pod that an earlier decision sent to one of them is tried there before any other. Names are random, so without
    that, pods that wait for nodes under way would change places from one decision to the next, and those that come late
    would find that only larger nodes are left, which are then bought once more.

    Args:
        nodes: nodes that are not going away.
        bound: pods by node name.
        daemons: DaemonSets of the cluster.
        csi_nodes: attachment limits.
        volumes: to find the volumes of bound pods.
        nominations: where pods were sent before, as in a Problem.
    """

    def __init__(
        self,
        nodes: Iterable[StateNode],
        bound: Mapping[str, Sequence[Pod]],
        daemons: Sequence[Daemon],
        csi_nodes: Iterable[CSINode] = (),
        volumes: VolumeIndex | None = None,
        nominations: Mapping[str, str] | None = None,
    ) -> None:
        views = sorted((NodeView(state) for state in nodes), key=lambda view: (not view.initialized, view.name))
        limits = {node.name: _limits(node) for node in csi_nodes}
        self.nodes = tuple(
            ExistingNode(index, view, _on(view, bound), daemons, limits.get(_node_name(view), {}))
            for index, view in enumerate(views)
        )
        if volumes is not None and limits:
            for node in self.nodes:
                held = (volumes.of(pod).claims for pod in _on(node.view, bound) if pod.spec.volumes)
                node.volumes = frozenset(claim for claims in held for claim in claims)
        self.everything = (1 << len(self.nodes)) - 1
        self.usable = self._mask(node for node in self.nodes if all(left >= 0 for left in node.free.values()))
        self.waiting = 0
        self._values: dict[str, dict[str, int]] = {}
        self._meeting: dict[Requirement, int] = {}
        self._selected: dict[Selection, int] = {}
        self._tolerated: dict[tuple[Toleration, ...], int] = {}
        self._by_taints: dict[tuple[Taint, ...], int] = {}
        for node in self.nodes:
            taints = node.view.taints
            self._by_taints[taints] = self._by_taints.get(taints, 0) | node.bit
        self._room: dict[str, dict[int, int]] = {}
        by_name = {_claim_or_node(node.view): node.bit for node in self.nodes} if nominations else {}
        self._nominated = {uid: by_name.get(name, 0) for uid, name in (nominations or {}).items()}

    def hold_back(self, pools: Mapping[str, NodePool], now: datetime) -> None:
        """Keep running pods off nodes whose ``consolidateAfter`` has not passed (consolidation only, spec 2.5)."""
        self.waiting = self._mask(
            node for node in self.nodes if _under_consolidate_after(node.view, pools.get(node.view.node_pool), now)
        )

    def candidates(self, shape: Shape) -> int:
        """Nodes that a shape may be on, has room on, and was not refused by for good."""
        mask = shape.existing_mask
        if mask is None:
            mask = self.selected(shape.selection) & self.tolerated(shape.tolerations) & self.usable
            if shape.running:
                mask &= ~self.waiting
            shape.existing_mask = mask
        mask &= ~shape.dead_existing
        if mask:
            for name, amount in shape.items:
                mask &= self.with_room(name, amount)
        return mask

    def first(self, pod: Pod, mask: int) -> int:
        """The node of a mask that a pod tries first."""
        return mask & self._nominated.get(pod.metadata.uid, 0) or mask & -mask

    def alike(self, pods: Sequence[Pod], mask: int) -> Sequence[Pod]:
        """The pods from the first on that all try the same node of a mask first."""
        if not self._nominated:
            return pods
        node = self.first(pods[0], mask)
        return list(takewhile(lambda pod: self.first(pod, mask) == node, pods))

    def values(self, key: str) -> dict[str, int]:
        """The values of a label and the nodes that have each."""
        found = self._values.get(key)
        if found is None:
            found = self._values[key] = {}
            for node in self.nodes:
                value = node.labels.get(key)
                if value is not None:
                    found[value] = found.get(value, 0) | node.bit
        return found

    def selected(self, selection: Selection) -> int:
        """Nodes whose labels meet a selection; undefined labels are not assumed."""
        found = self._selected.get(selection)
        if found is None:
            found = 0 if selection.contradiction is not None else self.everything
            for item in selection.requirements:
                found &= self._meeting_one(item, absent=item.key not in selection.positive)
            self._selected[selection] = found
        return found

    def tolerated(self, tolerations: tuple[Toleration, ...]) -> int:
        """Nodes whose taints are all tolerated."""
        found = self._tolerated.get(tolerations)
        if found is None:
            found = 0
            for taints, mask in self._by_taints.items():
                if not untolerated(taints, tolerations):
                    found |= mask
            self._tolerated[tolerations] = found
        return found

    def with_room(self, name: str, amount: int) -> int:
        """Nodes that have this much of a resource left."""
        if amount <= 0:
            return self.everything
        table = self._room.setdefault(name, {})
        found = table.get(amount)
        if found is None:
            found = table[amount] = self._mask(node for node in self.nodes if node.free.get(name, 0) >= amount)
        return found

    def place(self, node: ExistingNode, pods: Sequence[Pod], shape: Shape) -> None:
        """Put pods of a shape on a node."""
        free, count = node.free, len(pods)
        for name, amount in shape.items:
            before = free.get(name, 0)
            after = free[name] = before - amount * count
            table = self._room.get(name)
            if table is not None:
                for threshold, mask in table.items():
                    if after < threshold <= before:
                        table[threshold] = mask & ~node.bit
        node.pods.extend(pods)
        if shape.ports:
            node.ports += shape.ports
        if shape.volumes.claims:
            node.volumes |= shape.volumes.claims

    def _meeting_one(self, item: Requirement, *, absent: bool) -> int:
        found = self._meeting.get(item)
        if found is None:
            found = 0
            for value, mask in self.values(item.key).items():
                if item.has(value):
                    found |= mask
            self._meeting[item] = found
        if absent:
            labelled = 0
            for mask in self.values(item.key).values():
                labelled |= mask
            found |= self.everything & ~labelled
        return found

    @staticmethod
    def _mask(nodes: Iterable[ExistingNode]) -> int:
        mask = 0
        for node in nodes:
            mask |= node.bit
        return mask


def node_labels(view: NodeView) -> dict[str, str]:
    """Labels under today's names, with the hostname."""
    if labels.ALIASES.keys().isdisjoint(view.labels):
        return {**view.labels, labels.HOSTNAME: view.hostname}
    current = {labels.ALIASES.get(key, key): value for key, value in view.labels.items()}
    current.update({key: value for key, value in view.labels.items() if key not in labels.ALIASES})
    current[labels.HOSTNAME] = view.hostname
    return current


def _claim_or_node(view: NodeView) -> str:
    return view.node_claim.name if view.node_claim is not None else _node_name(view)


def _node_name(view: NodeView) -> str:
    return view.node.name if view.node is not None else ""


def _on(view: NodeView, bound: Mapping[str, Sequence[Pod]]) -> Sequence[Pod]:
    return bound.get(view.node.name, ()) if view.node is not None else ()


def _limits(node: CSINode) -> dict[str, int]:
    return {
        driver.name: driver.allocatable.count
        for driver in node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def _under_consolidate_after(view: NodeView, pool: NodePool | None, now: datetime) -> bool:
    claim = view.node_claim
    if pool is None or claim is None or pool.spec.disruption.consolidate_after == NEVER:
        return False
    try:
        wait = parse_duration(pool.spec.disruption.consolidate_after)
    except DurationError:
        return False
    initialized = find_condition(claim.status.conditions, "Initialized")
    if wait <= timedelta(0) or initialized is None or initialized.status != "True":
        return False
    last = claim.status.last_pod_event_time or initialized.last_transition_time
    return last is not None and now - last < wait
