"""Giving up preferences one at a time (spec/karpenter-scheduling.md 2.7).

Every required OR-term is used up before any preference is given up; each step is one change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from karpenter_linode.model import codec
from karpenter_linode.scheduling.taints import TOLERATE_PREFER_NO_SCHEDULE

if TYPE_CHECKING:
    from karpenter_linode.model.core import Affinity, NodeAffinity, Pod, PodAffinity

_T = TypeVar("_T")
_NODE = "spec.affinity.nodeAffinity"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution[0]"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution[0]"


def relax(pod: Pod, *, tolerate_prefer_no_schedule: bool) -> tuple[Pod, str] | None:
    """The pod with one demand less, and what was given up; None when nothing is left to give up.

    Args:
        pod: the pod as it was tried.
        tolerate_prefer_no_schedule: whether some NodePool has a PreferNoSchedule taint, so that tolerating it helps.
    """
    affinity = pod.spec.affinity
    relaxed = _relax_affinity(affinity) if affinity is not None else None
    if relaxed is not None:
        return _with(pod, affinity=relaxed[0]), f"removing: {relaxed[1]}"
    constraints = pod.spec.topology_spread_constraints
    for index, constraint in enumerate(constraints):
        if constraint.when_unsatisfiable == "ScheduleAnyway":
            kept = list(constraints)
            kept[index] = kept[-1]
            text = f"removing: spec.topologySpreadConstraints = {_json(constraint)}"
            return _with(pod, topology_spread_constraints=tuple(kept[:-1])), text
    tolerations = pod.spec.tolerations
    if tolerate_prefer_no_schedule and TOLERATE_PREFER_NO_SCHEDULE not in tolerations:
        text = "adding: toleration for PreferNoSchedule taints"
        return _with(pod, tolerations=(*tolerations, TOLERATE_PREFER_NO_SCHEDULE)), text
    return None


def _relax_affinity(affinity: Affinity) -> tuple[Affinity, str] | None:
    node = affinity.node_affinity
    required = node.required_during_scheduling_ignored_during_execution if node is not None else None
    if node is not None and required is not None and len(required.node_selector_terms) > 1:
        first, *rest = required.node_selector_terms
        kept = msgspec.structs.replace(required, node_selector_terms=tuple(rest))
        changed = msgspec.structs.replace(node, required_during_scheduling_ignored_during_execution=kept)
        return _with_node(affinity, changed), f"{_NODE}.{_REQUIRED}={_json(first)}"
    if affinity.pod_affinity is not None and (dropped := _drop_heaviest_pod_term(affinity.pod_affinity)) is not None:
        text = f"spec.affinity.podAffinity.{_PREFERRED}={dropped[1]}"
        return msgspec.structs.replace(affinity, pod_affinity=dropped[0]), text
    anti = affinity.pod_anti_affinity
    if anti is not None and (dropped := _drop_heaviest_pod_term(anti)) is not None:
        text = f"spec.affinity.podAntiAffinity.{_PREFERRED}={dropped[1]}"
        return msgspec.structs.replace(affinity, pod_anti_affinity=dropped[0]), text
    if node is not None and node.preferred_during_scheduling_ignored_during_execution:
        terms = node.preferred_during_scheduling_ignored_during_execution
        heaviest, kept_terms = _without_heaviest(terms, [term.weight for term in terms])
        changed = msgspec.structs.replace(node, preferred_during_scheduling_ignored_during_execution=kept_terms)
        return _with_node(affinity, changed), f"{_NODE}.{_PREFERRED}={_json(heaviest)}"
    return None


def _drop_heaviest_pod_term(affinity: PodAffinity) -> tuple[PodAffinity, str] | None:
    terms = affinity.preferred_during_scheduling_ignored_during_execution
    if not terms:
        return None
    heaviest, kept = _without_heaviest(terms, [term.weight for term in terms])
    changed = msgspec.structs.replace(affinity, preferred_during_scheduling_ignored_during_execution=kept)
    return changed, _json(heaviest)


def _without_heaviest(terms: tuple[_T, ...], weights: list[int]) -> tuple[_T, tuple[_T, ...]]:
    index = weights.index(max(weights))
    return terms[index], terms[:index] + terms[index + 1 :]


def _with_node(affinity: Affinity, node: NodeAffinity) -> Affinity:
    return msgspec.structs.replace(affinity, node_affinity=node)


def _with(pod: Pod, **changes: object) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, **changes))


def _json(value: object) -> str:
    return codec.encode(value).decode()
