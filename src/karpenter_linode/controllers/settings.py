"""Settings of the controllers."""

from __future__ import annotations

from datetime import timedelta

from msgspec import Struct, field

from karpenter_linode.lifecycle.step import LifecycleSettings
from karpenter_linode.scheduling.problem import SchedulingOptions


class Settings(Struct, frozen=True):
    """What the controllers need to know of the process's options.

    Args:
        scheduling: settings of the scheduling simulation.
        lifecycle: time limits and switches of NodeClaims.
        batch_idle_duration: a batch closes after this much quiet.
        batch_max_duration: a batch never stays open longer.
        workers: objects that one controller works on at a time.
        launch_workers: NodeClaims whose lives are moved on at a time; each may wait for the cloud.
        drain_workers: Nodes drained, and pods evicted, at a time.
    """

    scheduling: SchedulingOptions = field(default_factory=SchedulingOptions)
    lifecycle: LifecycleSettings = field(default_factory=LifecycleSettings)
    batch_idle_duration: timedelta = timedelta(seconds=1)
    batch_max_duration: timedelta = timedelta(seconds=10)
    workers: int = 10
    launch_workers: int = 1000
    drain_workers: int = 100

    @property
    def nomination_window(self) -> timedelta:
        """How long pods are expected on a node they were nominated to (spec/karpenter-scheduling.md 1.15)."""
        return max(2 * self.batch_max_duration, timedelta(seconds=10))
