"""Warnings about preferences that can keep nodes from being consolidated (spec/karpenter-scheduling.md 1.7)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from karpenter_linode.model.wording import few

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from karpenter_linode.controllers.runtime import Runtime
    from karpenter_linode.model.core import Pod

_AGAIN: Final = timedelta(hours=24)
_SHOWN: Final = 10


class PreferenceWarnings:
    """Tells of each pod once a day.

    Upstream has one memory for both warnings, so that it tells of a pod with both preferences in every pass; here each
    has its own.

    Args:
        runtime: ports and settings.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._told: dict[str, dict[str, datetime]] = {
            "pod(s) have a preferred Anti-Affinity which can prevent consolidation": {},
            "pod(s) have a preferred TopologySpreadConstraint which can prevent consolidation": {},
        }

    def look_at(self, pods: Iterable[Pod]) -> None:
        """Tell of those that were not told of lately.

        Args:
            pods: the pending pods.
        """
        if self._runtime.settings.scheduling.preference_policy == "Ignore":
            return
        now, pods = self._runtime.now(), tuple(pods)
        for (text, told), prefers in zip(self._told.items(), (_prefers_apart, _prefers_spread), strict=True):
            while told and now - next(iter(told.values())) >= _AGAIN:  # the oldest stand first
                del told[next(iter(told))]
            new = [pod for pod in pods if pod.uid not in told and prefers(pod)]
            if new:
                told.update((pod.uid, now) for pod in new)
                self._runtime.logger.info(text, controller="provisioner", pods=few([pod.key for pod in new], _SHOWN))


def _prefers_apart(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    anti = affinity.pod_anti_affinity if affinity is not None else None
    return anti is not None and bool(anti.preferred_during_scheduling_ignored_during_execution)


def _prefers_spread(pod: Pod) -> bool:
    return any(item.when_unsatisfiable == "ScheduleAnyway" for item in pod.spec.topology_spread_constraints)
