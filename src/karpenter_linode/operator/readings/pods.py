"""Readings of pods (spec/karpenter-lifecycle.md 7.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.cluster.view import is_managed_node
from karpenter_linode.model import labels
from karpenter_linode.model.core import Node, Pod
from karpenter_linode.model.meta import is_true
from karpenter_linode.scheduling.pods import is_scheduled

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from karpenter_linode.cluster.view import View
    from karpenter_linode.controllers.pod_times import PodTimes
    from karpenter_linode.operator.metrics import Reading

_PREFIX: Final = "karpenter_pods_"
_PENDING: Final = "Pending"
_PLACE: Final = (labels.NODEPOOL, labels.ZONE, labels.ARCH, labels.CAPACITY_TYPE, labels.INSTANCE_TYPE)


def read_pods(view: View, times: Mapping[str, PodTimes], now: datetime) -> Iterator[Reading]:
    """Every pod, and how long those have waited that do not run.

    Args:
        view: the mirrored cluster.
        times: what is remembered of pods that do not run yet, by UID.
        now: the time.
    """
    nodes = {node.name: node for node in view.all(Node)}
    for pod in view.all(Pod):
        node = nodes.get(pod.spec.node_name)
        yield _PREFIX + "state", _state(pod, node), 1
        if pod.status.phase == _PENDING:
            yield from _waiting(pod, times.get(pod.uid), now)


def _state(pod: Pod, node: Node | None) -> tuple[str, ...]:
    carried = node.metadata.labels if node is not None else {}
    pool, zone, arch, capacity_type, instance_type = (carried.get(key, "") for key in _PLACE)
    conditions = pod.status.conditions
    return (
        *(pod.name, pod.namespace, _owner(pod), pod.spec.node_name, _word(is_true(conditions, "PodScheduled"))),
        *(pool, zone, arch, capacity_type, instance_type, pod.status.phase, _word(is_true(conditions, "Ready"))),
        _word(node is not None and is_managed_node(node)),
    )


def _waiting(pod: Pod, times: PodTimes | None, now: datetime) -> Iterator[Reading]:
    series = (pod.name, pod.namespace)
    created, unbound = pod.metadata.creation_timestamp, not is_scheduled(pod)
    if created is not None:
        age = (now - created).total_seconds()
        yield _PREFIX + "unstarted_time_seconds", series, age
        if unbound:
            yield _PREFIX + "unbound_time_seconds", series, age
    if times is None:
        return
    if times.schedulable is not None:
        waited = (now - times.schedulable).total_seconds()
        yield _PREFIX + "provisioning_unstarted_time_seconds", series, waited
        if unbound:
            yield _PREFIX + "provisioning_unbound_time_seconds", series, waited
    if times.seen is not None and times.decided is None and unbound:
        undecided = (now - times.seen).total_seconds()
        yield _PREFIX + "provisioning_scheduling_undecided_time_seconds", series, undecided


def _owner(pod: Pod) -> str:
    """The path of the first owner, as objects once linked to themselves."""
    if not pod.metadata.owner_references:
        return ""
    owner = pod.metadata.owner_references[0]
    return f"/apis/{owner.api_version}/namespaces/{pod.namespace}/{owner.kind.lower()}s/{owner.name}"


def _word(yes: bool) -> str:  # noqa: FBT001 - a truth value is what it spells
    return "true" if yes else "false"
