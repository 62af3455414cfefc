"""From a pod's spec to the topology rules it is under (spec/karpenter-scheduling.md 2.12, groups)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karpenter_linode.model import labels
from karpenter_linode.scheduling.selection import required_alternatives
from karpenter_linode.scheduling.topology.group import AFFINITY, ANTI_AFFINITY, SPREAD, GroupKey
from karpenter_linode.scheduling.topology.node_filter import NodeFilter
from karpenter_linode.scheduling.topology.selector import pod_selector, term_namespaces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from karpenter_linode.model.core import Pod, PodAffinity, PodAffinityTerm
    from karpenter_linode.scheduling.topology.group import Kind


def spread_rules(pod: Pod, *, respect_preferences: bool) -> Iterator[GroupKey]:
    """The spread constraints of a pod; ``ScheduleAnyway`` ones only while preferences count."""
    for constraint in pod.spec.topology_spread_constraints:
        if constraint.when_unsatisfiable != "DoNotSchedule" and not respect_preferences:
            continue
        honours_affinity = constraint.node_affinity_policy != "Ignore"
        honours_taints = constraint.node_taints_policy == "Honor"
        yield GroupKey(
            SPREAD,
            labels.ALIASES.get(constraint.topology_key, constraint.topology_key),
            pod_selector((pod.namespace,), constraint.label_selector, pod.metadata.labels, constraint.match_label_keys),
            constraint.max_skew,
            constraint.min_domains or 0,
            NodeFilter(
                tuple(item for item in required_alternatives(pod)) if honours_affinity else (),
                pod.spec.tolerations if honours_taints else None,
            ),
        )


def affinity_rules(
    pod: Pod,
    namespaces: Mapping[str, Mapping[str, str]],
    has_tainted: Callable[[str], bool],
    *,
    respect_preferences: bool,
) -> Iterator[GroupKey]:
    """The affinity and anti-affinity terms of a pod; preferred ones only while preferences count."""
    affinity = pod.spec.affinity
    if affinity is None:
        return
    kinds: tuple[tuple[Kind, PodAffinity | None], ...] = (
        (AFFINITY, affinity.pod_affinity),
        (ANTI_AFFINITY, affinity.pod_anti_affinity),
    )
    for kind, terms in kinds:
        for term in _terms(terms, respect_preferences=respect_preferences):
            rule = term_rule(kind, pod, term, namespaces)
            tolerations = pod.spec.tolerations if has_tainted(rule.key) else None
            yield GroupKey(kind, rule.key, rule.selector, tolerations=tolerations)


def inverse_rules(pod: Pod, namespaces: Mapping[str, Mapping[str, str]]) -> Iterator[GroupKey]:
    """The required anti-affinity terms of a pod, turned round: they keep the pods they select away from it."""
    affinity = pod.spec.affinity
    if affinity is not None:
        for term in _terms(affinity.pod_anti_affinity, respect_preferences=False):
            yield term_rule(ANTI_AFFINITY, pod, term, namespaces)


def term_rule(kind: Kind, pod: Pod, term: PodAffinityTerm, namespaces: Mapping[str, Mapping[str, str]]) -> GroupKey:
    """The rule of one affinity term."""
    key = labels.ALIASES.get(term.topology_key, term.topology_key)
    spaces = term_namespaces(term, pod.namespace, namespaces)
    selector = pod_selector(
        spaces, term.label_selector, pod.metadata.labels, term.match_label_keys, term.mismatch_label_keys
    )
    return GroupKey(kind, key, selector)


def _terms(affinity: PodAffinity | None, *, respect_preferences: bool) -> Iterator[PodAffinityTerm]:
    if affinity is None:
        return
    yield from affinity.required_during_scheduling_ignored_during_execution
    if respect_preferences:
        for weighted in affinity.preferred_during_scheduling_ignored_during_execution:
            yield weighted.pod_affinity_term
