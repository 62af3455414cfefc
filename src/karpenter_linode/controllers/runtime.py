"""What every controller works with."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from karpenter_linode.cluster.state import ClusterState
from karpenter_linode.controllers.hub import Change, Hub
from karpenter_linode.controllers.pod_times import PodClock
from karpenter_linode.controllers.settings import Settings
from karpenter_linode.model.core import Pod

if TYPE_CHECKING:
    from datetime import datetime

    from karpenter_linode.model.meta import KubeObject
    from karpenter_linode.ports import Clock, CloudProvider, EventSink, KubeApi, Logger, Metrics, Random


class Runtime:
    """Ports, mirrored state and settings of one controller process.

    Args:
        kube: the Kubernetes API.
        cloud: the cloud.
        clock: time.
        random: jitter.
        events: Kubernetes events.
        metrics: metrics.
        logger: log lines.
        settings: settings.
    """

    def __init__(
        self,
        kube: KubeApi,
        cloud: CloudProvider,
        clock: Clock,
        random: Random,
        events: EventSink,
        metrics: Metrics,
        logger: Logger,
        settings: Settings | None = None,
    ) -> None:
        self.kube, self.cloud, self.clock, self.random = kube, cloud, clock, random
        self.events, self.metrics, self.logger = events, metrics, logger
        self.settings = settings or Settings()
        self.hub = Hub()
        scheduling = self.settings.scheduling
        self.state = ClusterState(
            with_devices=not scheduling.ignore_dra_requests, with_spread=bool(scheduling.default_spread)
        )
        self.pod_clock = PodClock(clock, metrics)
        self.hub.subscribe(Pod, self.pod_clock.on_pod)
        self._synced = asyncio.Event()

    def now(self) -> datetime:
        """The time."""
        return self.clock.now()

    def observe(self, obj: KubeObject) -> None:
        """Take in an object that the API returned, without waiting for the watch to show it."""
        old = self.state.observe(obj)
        if old is not obj:
            self.hub.publish(Change(old, obj))

    def announce_sync(self) -> None:
        """Let the controllers start once everything was listed."""
        if self.state.synced():
            self._synced.set()

    async def wait_synced(self) -> None:
        """Wait until every kind was listed once."""
        await self._synced.wait()
