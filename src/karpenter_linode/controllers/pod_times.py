"""How long pods wait: for a decision, for their binding, for their start (spec/karpenter-lifecycle.md 4.1 and 7.1)."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from karpenter_linode.model.meta import find_condition
from karpenter_linode.scheduling.pods import is_provisionable, is_scheduled, is_terminal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from karpenter_linode.controllers.hub import Change
    from karpenter_linode.model.core import Pod
    from karpenter_linode.ports import Clock, Metrics

_PENDING: Final = "Pending"
_BOUND: Final = "karpenter_pods_bound_duration_seconds"
_PROVISIONING_BOUND: Final = "karpenter_pods_provisioning_bound_duration_seconds"
_STARTUP: Final = "karpenter_pods_startup_duration_seconds"
_PROVISIONING_STARTUP: Final = "karpenter_pods_provisioning_startup_duration_seconds"
_DECISION: Final = "karpenter_pods_scheduling_decision_duration_seconds"


class PodTimes(Struct):
    """What is remembered of a pod that does not run yet.

    Args:
        seen: when it was first seen to call for capacity.
        decided: when a scheduling decision was first made about it.
        schedulable: when a scheduling decision first had a place for it.
        bound: whether its binding was seen and counted.
    """

    seen: datetime | None = None
    decided: datetime | None = None
    schedulable: datetime | None = None
    bound: bool = False


class PodClock:
    """Follows pods from the first time they are seen pending to their readiness.

    A pod that was never seen pending is not measured: after a restart of the controller nobody knows when it started.

    Args:
        clock: the time of decisions.
        metrics: where durations are counted.
    """

    def __init__(self, clock: Clock, metrics: Metrics) -> None:
        self._clock, self._metrics = clock, metrics
        self._pods: dict[str, PodTimes] = {}

    def times(self) -> Mapping[str, PodTimes]:
        """What is known of each pod that does not run yet, by UID; a copy."""
        return {
            uid: PodTimes(item.seen, item.decided, item.schedulable, item.bound) for uid, item in self._pods.items()
        }

    def on_pod(self, change: Change) -> None:
        """A pod changed."""
        pod: Pod | None = change.new
        if change.old is not None and (pod is None or pod.uid != change.old.uid):
            self._pods.pop(change.old.uid, None)  # a watch may miss the end of a pod whose name is taken again
        if pod is None or is_terminal(pod):
            self._pods.pop(change.object.uid, None)
            return
        times = self._pods.get(pod.uid)
        if times is None:
            if pod.status.phase != _PENDING:
                return
            times = self._pods[pod.uid] = PodTimes(bound=is_scheduled(pod))
        if times.seen is None and is_provisionable(pod):
            times.seen = self._clock.now()
        if not times.bound and is_scheduled(pod):
            times.bound = True
            self._since(pod, "PodScheduled", _BOUND, _PROVISIONING_BOUND, times)
        if pod.status.phase != _PENDING:
            condition = find_condition(pod.status.conditions, "Ready")
            if condition is not None and condition.status == "True":
                self._since(pod, "Ready", _STARTUP, _PROVISIONING_STARTUP, times)
                del self._pods[pod.uid]

    def decided(self, uids: Iterable[str], unplaced: Iterable[str]) -> None:
        """A scheduling decision was made.

        Args:
            uids: the pods that it was about.
            unplaced: those of them that it had no place for.
        """
        now, without = self._clock.now(), frozenset(unplaced)
        for uid in uids:
            times = self._pods.get(uid)
            if times is None:
                continue
            if times.decided is None:
                times.decided = now
                if times.seen is not None:
                    self._metrics.observe(_DECISION, {}, (now - times.seen).total_seconds())
            if times.schedulable is None and uid not in without:
                times.schedulable = now

    def _since(self, pod: Pod, condition_type: str, whole: str, provisioning: str, times: PodTimes) -> None:
        """Count from the creation, and from the first place that was found, to a condition."""
        condition = find_condition(pod.status.conditions, condition_type)
        reached = condition.last_transition_time if condition is not None else None
        created = pod.metadata.creation_timestamp
        if reached is None or created is None:
            return
        self._metrics.observe(whole, {}, max((reached - created).total_seconds(), 0))
        if times.schedulable is not None:
            self._metrics.observe(provisioning, {}, max((reached - times.schedulable).total_seconds(), 0))
