"""Default topology spread for pods that declare none (spec/karpenter-scheduling.md 1.12).

The selector is deduced as kube-scheduler does it: from the Services that select the pod and from its controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from karpenter_linode.model.meta import LabelSelector
from karpenter_linode.model.requirement_spec import NodeSelectorRequirement
from karpenter_linode.model.validation import qualified_name_error
from karpenter_linode.model.workloads import ReplicaSet, ReplicationController, StatefulSet

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from karpenter_linode.model.core import Pod, TopologySpreadConstraint
    from karpenter_linode.model.meta import OwnerReference
    from karpenter_linode.model.workloads import Service

Workload = ReplicationController | ReplicaSet | StatefulSet

_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")
_WORKLOADS: Final = frozenset(
    {(kind.API_VERSION, kind.KIND) for kind in (ReplicationController, ReplicaSet, StatefulSet)}
)


def constraint_errors(constraints: Sequence[TopologySpreadConstraint]) -> str:
    """What is wrong with configured default constraints, as the contract's text, or ""."""
    prefix = "validating scheduler config, podTopologySpread.defaultConstraints"
    seen: dict[tuple[str, str], int] = {}
    for index, item in enumerate(constraints):
        fault = _fault(item)
        key = (item.topology_key, item.when_unsatisfiable)
        if not fault and key in seen:
            fault = f" is a duplicate of [{seen[key]}], {{{key[0]}, {key[1]}}}"
        if fault:
            return f"{prefix}[{index}]{fault}"
        seen[key] = index
    return ""


def with_default_spread(
    pods: Iterable[Pod],
    constraints: Sequence[TopologySpreadConstraint],
    services: Iterable[Service],
    workloads: Iterable[Workload],
) -> tuple[Pod, ...]:
    """The pods, those without a spread constraint of their own under the default ones.

    Args:
        pods: any pods.
        constraints: the configured defaults; none switch this off.
        services: every Service.
        workloads: every ReplicationController, ReplicaSet and StatefulSet.
    """
    if not constraints:
        return tuple(pods)
    selectors = SpreadSelectors(services, workloads)
    return tuple(_spread(pod, constraints, selectors) for pod in pods)


class SpreadSelectors:
    """Tells which pods a pod belongs together with, each question once.

    Args:
        services: every Service.
        workloads: every ReplicationController, ReplicaSet and StatefulSet.
    """

    def __init__(self, services: Iterable[Service], workloads: Iterable[Workload]) -> None:
        self._services: dict[str, list[dict[str, str]]] = {}
        for service in services:
            if service.spec.selector:
                self._services.setdefault(service.namespace, []).append(service.spec.selector)
        self._workloads = {(item.KIND, item.namespace, item.name): item for item in workloads}
        self._found: dict[tuple[str, str, str, tuple[tuple[str, str], ...]], LabelSelector | None] = {}

    def of(self, pod: Pod) -> LabelSelector | None:
        """The selector of the workload that a pod belongs to, or None where none can be told."""
        owner = _workload_ref(pod)
        labels = tuple(sorted(pod.metadata.labels.items()))
        kind, name = (owner.kind, owner.name) if owner is not None else ("", "")
        key = (pod.namespace, kind, name, labels)
        if key not in self._found:
            self._found[key] = self._deduced(pod, self._workloads.get((kind, pod.namespace, name)))
        return self._found[key]

    def lost_owner(self, pod: Pod) -> str:
        """``Kind namespace/name`` of the workload that a pod names as its controller and that is not there, or ""."""
        owner = _workload_ref(pod)
        if owner is None or (owner.kind, pod.namespace, owner.name) in self._workloads:
            return ""
        return f"{owner.kind} {pod.namespace}/{owner.name}"

    def _deduced(self, pod: Pod, owner: Workload | None) -> LabelSelector | None:
        own, labels = pod.metadata.labels, dict[str, str]()
        for selector in self._services.get(pod.namespace, ()):
            if all(own.get(key) == value for key, value in selector.items()):
                labels.update(selector)
        expressions: tuple[NodeSelectorRequirement, ...] = ()
        if isinstance(owner, ReplicationController):
            labels.update(owner.spec.selector or {})
        elif owner is not None:
            expressions = _as_expressions(owner.spec.selector)
        return LabelSelector(labels, expressions) if labels or expressions else None


def _workload_ref(pod: Pod) -> OwnerReference | None:
    owner = next((item for item in pod.metadata.owner_references if item.controller), None)
    return owner if owner is not None and (owner.api_version, owner.kind) in _WORKLOADS else None


def _spread(pod: Pod, constraints: Sequence[TopologySpreadConstraint], selectors: SpreadSelectors) -> Pod:
    if pod.spec.topology_spread_constraints:
        return pod
    selector = selectors.of(pod)
    if selector is None:
        return pod
    own = tuple(msgspec.structs.replace(item, label_selector=selector) for item in constraints)
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, topology_spread_constraints=own))


def _as_expressions(selector: LabelSelector) -> tuple[NodeSelectorRequirement, ...]:
    pairs = (NodeSelectorRequirement(key, "In", (value,)) for key, value in sorted(selector.match_labels.items()))
    return (*pairs, *selector.match_expressions)


def _fault(item: TopologySpreadConstraint) -> str:
    if item.max_skew <= 0:
        return ".maxSkew must be greater than 0"
    if not item.topology_key:
        return ".topologyKey must be set"
    error = qualified_name_error(item.topology_key)
    if error is not None:
        return f'.topologyKey "{item.topology_key}" is not a valid label name, {{{error}}}'
    if item.when_unsatisfiable not in _ACTIONS:
        return f'.whenUnsatisfiable "{item.when_unsatisfiable}" must be one of "DoNotSchedule" or "ScheduleAnyway"'
    if item.label_selector is not None:
        return ".labelSelector must not be set, as selectors are deduced for each pod"
    if item.match_label_keys:
        return ".matchLabelKeys must not be set, as it has no effect on default constraints"
    return ""
