"""Drain: which pods of a leaving node go now, and which must wait their turn (spec/karpenter-lifecycle.md 2.2)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from karpenter_linode.model.core import Pod
from karpenter_linode.scheduling.pods import (
    is_stuck_terminating,
    is_terminal,
    owned_by_daemon_set,
    owned_by_node,
)
from karpenter_linode.scheduling.taints import DISRUPTED, untolerated

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

_CRITICAL: Final = frozenset({"system-cluster-critical", "system-node-critical"})


class Drain(Struct, frozen=True):
    """The state of a drain.

    Args:
        waiting: every pod that still has to go.
        forced: those to delete now, whatever protects them, so that their grace fits the node's deadline.
        evicted: those of the tier whose turn it is.
    """

    waiting: tuple[Pod, ...] = ()
    forced: tuple[Pod, ...] = ()
    evicted: tuple[Pod, ...] = ()


def plan_drain(pods: Iterable[Pod], deadline: datetime | None, now: datetime) -> Drain:
    """Sort out the pods of a leaving node.

    Args:
        pods: pods bound to it.
        deadline: when the node goes whatever happens; None for never.
        now: the time.

    A tier waits until the one before it is really gone: terminating pods still count.
    """
    waiting = tuple(pod for pod in pods if is_waiting_eviction(pod, now))
    forced: list[Pod] = []
    tiers: dict[tuple[bool, bool], list[Pod]] = {}
    for pod in waiting:
        late = needs_force_delete(pod, deadline, now)
        turn = forced if late else tiers.setdefault((is_critical(pod), owned_by_daemon_set(pod)), [])
        turn.append(pod)
    first = tiers[min(tiers)] if tiers else []
    return Drain(waiting, tuple(forced), tuple(first))


def is_drainable(pod: Pod, now: datetime) -> bool:
    """Whether a drain concerns itself with a pod at all; protected pods are drainable, though they take their time."""
    return (
        bool(untolerated((DISRUPTED,), pod.spec.tolerations))
        and not is_stuck_terminating(pod, now)
        and not owned_by_node(pod)
    )


def is_waiting_eviction(pod: Pod, now: datetime) -> bool:
    """Whether a node has to wait for a pod."""
    return not is_terminal(pod) and is_drainable(pod, now)


def needs_force_delete(pod: Pod, deadline: datetime | None, now: datetime) -> bool:
    """Whether a pod has to be deleted now so that it ends before the node's deadline."""
    if deadline is None:
        return False
    deleted = pod.metadata.deletion_timestamp
    if deleted is not None:
        return deleted > deadline
    grace = pod.spec.termination_grace_period_seconds
    return grace is not None and now > deadline - timedelta(seconds=grace)


def is_critical(pod: Pod) -> bool:
    """Whether a pod belongs to the system: by the name of its priority class."""
    return pod.spec.priority_class_name in _CRITICAL
