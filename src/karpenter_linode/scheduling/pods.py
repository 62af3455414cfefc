"""What kind of pod it is: the predicates that provisioning and disruption share (spec/karpenter-scheduling.md 1.2)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from karpenter_linode.model import labels
from karpenter_linode.model.duration import DurationError, parse_duration
from karpenter_linode.model.selectors import selects
from karpenter_linode.scheduling.taints import DISRUPTED, untolerated

if TYPE_CHECKING:
    from collections.abc import Iterable

    from karpenter_linode.model.core import Pod, PodDisruptionBudget

DRA_IGNORED: Final = "pod has Dynamic Resource Allocation requirements that are not yet supported by Karpenter"
DRA_SKIPPED_LOG: Final = "skipping pod with Dynamic Resource Allocation requirements, not yet supported by Karpenter"
_STUCK_AFTER: Final = timedelta(minutes=1)
_APPS: Final = "apps/v1"


class DoNotDisrupt(Struct, frozen=True):
    """What the ``karpenter.sh/do-not-disrupt`` annotation of a pod means now.

    Args:
        in_force: whether the pod may not be disrupted.
        invalid: why the annotation's value was ignored, or "".
        until: when protection ends or ended, where the value is a duration and the start time is known.
    """

    in_force: bool = False
    invalid: str = ""
    until: datetime | None = None


def is_scheduled(pod: Pod) -> bool:
    """Bound to a node."""
    return bool(pod.spec.node_name)


def is_preempting(pod: Pod) -> bool:
    """Waiting for victims on the node it was nominated to."""
    return bool(pod.status.nominated_node_name)


def failed_to_schedule(pod: Pod) -> bool:
    """kube-scheduler found no place; a scheduling gate is not that."""
    return any(item.type == "PodScheduled" and item.reason == "Unschedulable" for item in pod.status.conditions)


def is_terminal(pod: Pod) -> bool:
    """Finished, well or not."""
    return pod.status.phase in {"Failed", "Succeeded"}


def is_terminating(pod: Pod) -> bool:
    """Deletion has begun."""
    return pod.metadata.deletion_timestamp is not None


def is_stuck_terminating(pod: Pod, now: datetime) -> bool:
    """Still there a minute after it should be gone."""
    deleted = pod.metadata.deletion_timestamp
    return deleted is not None and now - deleted > _STUCK_AFTER


def is_active(pod: Pod) -> bool:
    """Neither finished nor on its way out."""
    return not is_terminal(pod) and not is_terminating(pod)


def owned_by(pod: Pod, api_version: str, kind: str) -> bool:
    """Whether an owner reference names exactly that kind."""
    return any(owner.api_version == api_version and owner.kind == kind for owner in pod.metadata.owner_references)


def owned_by_daemon_set(pod: Pod) -> bool:
    """A DaemonSet's pod."""
    return owned_by(pod, _APPS, "DaemonSet")


def owned_by_stateful_set(pod: Pod) -> bool:
    """A StatefulSet's pod."""
    return owned_by(pod, _APPS, "StatefulSet")


def owned_by_node(pod: Pod) -> bool:
    """A mirror pod of a static manifest."""
    return owned_by(pod, "v1", "Node")


def is_provisionable(pod: Pod) -> bool:
    """Whether a pod calls for capacity: unschedulable, unbound, and bound to no particular node by its owner."""
    return (
        failed_to_schedule(pod)
        and not is_scheduled(pod)
        and not is_preempting(pod)
        and not owned_by_daemon_set(pod)
        and not owned_by_node(pod)
    )


def is_reschedulable(pod: Pod) -> bool:
    """Whether a pod needs a new place when its node goes; a terminating StatefulSet pod comes back under its name."""
    comes_back = is_active(pod) or (owned_by_stateful_set(pod) and is_terminating(pod))
    return comes_back and not owned_by_daemon_set(pod) and not owned_by_node(pod)


def do_not_disrupt(pod: Pod, now: datetime | None) -> DoNotDisrupt:
    """Read the ``karpenter.sh/do-not-disrupt`` annotation: ``true``, or a duration since the pod's start.

    An unknown start or an unknown ``now`` leaves a valid duration in force.
    """
    value = pod.metadata.annotations.get(labels.DO_NOT_DISRUPT)
    if value is None:
        return DoNotDisrupt()
    if value == "true":
        return DoNotDisrupt(in_force=True)
    try:
        grace = parse_duration(value)
    except DurationError as error:
        return DoNotDisrupt(invalid=f'failed to parse "{value}" as a duration: {error}')
    if grace <= timedelta(0):
        return DoNotDisrupt(invalid=f'duration "{value}" must be positive')
    started = pod.status.start_time
    if started is None or now is None:
        return DoNotDisrupt(in_force=True)
    return DoNotDisrupt(in_force=now - started < grace, until=started + grace)


def is_disruptable(pod: Pod, now: datetime | None) -> bool:
    """Whether disruption may touch the pod's node for all that the pod says."""
    return not is_active(pod) or not do_not_disrupt(pod, now).in_force


def is_evictable(pod: Pod, now: datetime | None) -> bool:
    """Whether draining would evict the pod."""
    return (
        is_active(pod)
        and bool(untolerated((DISRUPTED,), pod.spec.tolerations))
        and not owned_by_node(pod)
        and not do_not_disrupt(pod, now).in_force
    )


def is_fully_blocked(pod: Pod, budgets: Iterable[PodDisruptionBudget], now: datetime | None) -> bool:
    """Whether PodDisruptionBudgets forbid eviction for good, not just for now."""
    if not is_evictable(pod, now):
        return False
    matching = [
        budget
        for budget in budgets
        if budget.namespace == pod.namespace and selects(budget.spec.selector, pod.metadata.labels)
    ]
    if len(matching) > 1:
        return True
    return any(_never_allows(budget, pod) for budget in matching)


def is_currently_reschedulable(pod: Pod, budgets: Iterable[PodDisruptionBudget], now: datetime | None) -> bool:
    """Whether a pod on a deleting node will be moved, so that it needs room elsewhere now."""
    return is_reschedulable(pod) and is_disruptable(pod, now) and not is_fully_blocked(pod, budgets, now)


def _never_allows(budget: PodDisruptionBudget, pod: Pod) -> bool:
    not_ready = any(item.type == "Ready" and item.status == "False" for item in pod.status.conditions)
    if budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow" and not_ready:
        return False
    return budget.spec.max_unavailable in {0, "0%"} or budget.spec.min_available == "100%"
