"""Readings of nodes (spec/karpenter-lifecycle.md 7.1). Nodes that are not ours are read too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karpenter_linode.cluster.view import is_managed_node
from karpenter_linode.model.core import Node
from karpenter_linode.operator.metric_table import NODE_LABELS
from karpenter_linode.operator.readings.amounts import amounts, pod_limits
from karpenter_linode.scheduling import resources as res
from karpenter_linode.scheduling.pods import is_terminal, owned_by_daemon_set

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from karpenter_linode.cluster.view import View
    from karpenter_linode.model.core import Pod
    from karpenter_linode.operator.metrics import Reading

_PREFIX = "karpenter_nodes_"
_NO_PHASE = ""  # the field is deprecated, nobody fills it


def read_nodes(view: View, now: datetime) -> Iterator[Reading]:
    """Every node, and how far all of them are used."""
    offered: res.Resources = {}
    asked: res.Resources = {}
    for node in view.all(Node):
        pods = [pod for pod in view.pods_on(node.name) if not is_terminal(pod)]
        requests = res.total(map(res.pod_requests, pods))
        allocatable = res.from_resource_list(node.status.allocatable)
        offered, asked = res.add(offered, allocatable), res.add(asked, requests)
        yield from _node(node, pods, requests, now)
    for name, amount in sorted(offered.items()):
        if amount:
            (kind, _), *_ = amounts({name: amount})
            yield "karpenter_cluster_utilization_percent", (kind,), 100 * asked.get(name, 0) / amount


def _node(node: Node, pods: list[Pod], requests: res.Resources, now: datetime) -> Iterator[Reading]:
    labels = (*_well_known(node), node.name, _NO_PHASE, "true" if is_managed_node(node) else "false")
    daemons = [pod for pod in pods if owned_by_daemon_set(pod)]
    allocatable = res.from_resource_list(node.status.allocatable)
    told = {
        "allocatable": allocatable,
        "total_pod_requests": requests,
        "total_pod_limits": _limits(pods),
        "total_daemon_requests": res.total(map(res.pod_requests, daemons)),
        "total_daemon_limits": _limits(daemons),
        "system_overhead": res.subtract(res.from_resource_list(node.status.capacity), allocatable),
    }
    for name, resources in told.items():
        for kind, amount in amounts(resources):
            yield _PREFIX + name, (*labels, kind), amount
    created = node.metadata.creation_timestamp
    if created is not None:
        yield _PREFIX + "current_lifetime_seconds", labels, (now - created).total_seconds()


def _well_known(node: Node) -> Iterator[str]:
    carried = node.metadata.labels
    for keys in NODE_LABELS.values():
        yield next((carried[key] for key in keys if carried.get(key)), "")


def _limits(pods: Iterable[Pod]) -> res.Resources:
    return res.total(map(pod_limits, pods))
