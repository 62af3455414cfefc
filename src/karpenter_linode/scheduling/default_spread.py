"""Default topology spread for pods that declare none (spec/karpenter-scheduling.md 1.12).

The selector is deduced as kube-scheduler does it: from the Services that select the pod and from its controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from karpenter_linode.model.meta import LabelSelector
from karpenter_linode.model.requirement_spec import NodeSelectorRequirement
from karpenter_linode.model.validation import qualified_name_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from karpenter_linode.model.core import Pod, TopologySpreadConstraint

_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")
_REPLICATION_CONTROLLER: Final = ("v1", "ReplicationController")
_WORKLOADS: Final = frozenset({("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet")})


class ServiceSelector(Struct, frozen=True):
    """What of a Service matters here; ``selector`` is None where the Service has none."""

    namespace: str
    selector: dict[str, str] | None = None


class OwnerSelector(Struct, frozen=True):
    """The selector of a workload, by its UID."""

    uid: str
    selector: LabelSelector


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
    services: Iterable[ServiceSelector],
    owners: Mapping[str, OwnerSelector],
) -> tuple[Pod, ...]:
    """The pods, those without a spread constraint of their own under the default ones.

    Args:
        pods: any pods.
        constraints: the configured defaults; none switch this off.
        services: every Service.
        owners: ReplicationControllers, ReplicaSets and StatefulSets by UID.
    """
    if not constraints:
        return tuple(pods)
    by_namespace: dict[str, list[ServiceSelector]] = {}
    for service in services:
        by_namespace.setdefault(service.namespace, []).append(service)
    return tuple(_spread(pod, constraints, by_namespace.get(pod.namespace, ()), owners) for pod in pods)


def deduced_selector(
    pod: Pod, services: Iterable[ServiceSelector], owners: Mapping[str, OwnerSelector]
) -> LabelSelector | None:
    """The selector of the workload that a pod belongs to, or None where none can be told.

    Args:
        pod: the pod.
        services: Services of its namespace.
        owners: workloads by UID.
    """
    labels: dict[str, str] = {}
    for service in services:
        selector = service.selector
        if selector is not None and all(pod.metadata.labels.get(key) == value for key, value in selector.items()):
            labels.update(selector)
    expressions: tuple[NodeSelectorRequirement, ...] = ()
    owner = next((item for item in pod.metadata.owner_references if item.controller), None)
    found = owners.get(owner.uid) if owner is not None else None
    if owner is not None and found is not None:
        kind = (owner.api_version, owner.kind)
        if kind == _REPLICATION_CONTROLLER:
            labels.update(found.selector.match_labels)
        elif kind in _WORKLOADS:
            expressions = _as_expressions(found.selector)
    return LabelSelector(labels, expressions) if labels or expressions else None


def _spread(
    pod: Pod,
    constraints: Sequence[TopologySpreadConstraint],
    services: Iterable[ServiceSelector],
    owners: Mapping[str, OwnerSelector],
) -> Pod:
    if pod.spec.topology_spread_constraints:
        return pod
    selector = deduced_selector(pod, services, owners)
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
