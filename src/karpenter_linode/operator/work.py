"""The part of the controller's life that follows the checks: lead, run the controllers, end in order."""

from __future__ import annotations

import asyncio
import gc
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from karpenter_linode.controllers.mirror import Mirror
from karpenter_linode.controllers.runtime import Runtime
from karpenter_linode.operator.condition_watch import ConditionWatch
from karpenter_linode.operator.flags import ControllerSettings
from karpenter_linode.operator.metrics import PrometheusMetrics
from karpenter_linode.operator.offerings import Offerings
from karpenter_linode.operator.scrape import Scrape, Sources, node_count
from karpenter_linode.operator.wiring import Operator, controllers_of, settings_from
from karpenter_linode.ports import Clock, Logger, Random

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from karpenter_linode.controllers.reconciler import Controller
    from karpenter_linode.kube.api import LightkubeApi
    from karpenter_linode.kube.events import KubeEvents
    from karpenter_linode.kube.lease import LeaderElector
    from karpenter_linode.operator.gate import WriteGate
    from karpenter_linode.operator.metered_cloud import MeteredCloud

DRAIN_SECONDS: Final = 30.0
# How long the first lists may take before it is told, and how often it is told then.
_PATIENCE: Final = timedelta(seconds=30)
_IMPATIENCE: Final = timedelta(seconds=10)


class Tools(Struct, frozen=True):
    """What the process works with from its first moment on."""

    settings: ControllerSettings
    clock: Clock
    random: Random
    metrics: PrometheusMetrics
    scrape: Scrape
    logger: Logger


class Work:
    """Runs the controllers while this process leads.

    Args:
        tools: settings, time, metrics, log.
        api: the cluster.
        cloud: the cloud.
        events: Kubernetes events.
        gate: shut when the end begins.
    """

    def __init__(
        self, tools: Tools, api: LightkubeApi, cloud: MeteredCloud, events: KubeEvents, gate: WriteGate
    ) -> None:
        self._tools, self._events, self._gate = tools, events, gate
        self._runtime = Runtime(
            api,
            cloud,
            tools.clock,
            tools.random,
            events,
            tools.metrics,
            tools.logger,
            settings_from(tools.settings.options),
        )
        if tools.settings.observability:
            ConditionWatch(self._runtime, lambda: tools.scrape.leading)
        offerings = Offerings(self._runtime)
        controllers = [*controllers_of(self._runtime), offerings]
        self._mirrors = self._operator(item for item in controllers if isinstance(item, Mirror))
        self._others = self._operator(item for item in controllers if not isinstance(item, Mirror))
        tools.scrape.sources = Sources(
            self._runtime, tuple(controllers), cloud, offerings, api.watching, events, tools.clock.now()
        )

    def not_ready(self) -> str:
        """A replica that waits for the lease is ready; one that leads is ready once it knows the cluster."""
        if not self._tools.scrape.leading:
            return ""
        missing = self._runtime.state.unsynced_kinds()
        return f"not listed yet: {', '.join(missing)}" if missing else ""

    async def run(self, elector: LeaderElector | None) -> None:
        """Work until cancelled.

        Raises:
            LeaseLostError: another process leads now, or may.
        """
        helpers = [
            asyncio.create_task(self._events.run(), name="events"),
            asyncio.create_task(self._settle(), name="settle"),
        ]
        early = elector is not None and self._tools.settings.warmup
        try:
            if early:
                self._mirrors.start()
            if elector is not None:
                await elector.acquire()
            self._lead(early=early)
            await (elector.hold() if elector is not None else asyncio.Event().wait())
        finally:
            await self._end(helpers)

    def _lead(self, *, early: bool) -> None:
        self._tools.scrape.leading = True
        if not early:
            self._mirrors.start()
        self._others.start()

    async def _end(self, helpers: list[asyncio.Task[None]]) -> None:
        await self._events.drain()
        # Shut the gate before anything is cut short, so that no answer to a write under way is lost.
        await self._gate.drain(DRAIN_SECONDS)
        await self._others.stop()
        await self._mirrors.stop()
        for task in helpers:
            task.cancel()
        await asyncio.gather(*helpers, return_exceptions=True)
        self._tools.scrape.leading = False

    async def _settle(self) -> None:
        """What the first lists brought lives long: the garbage collector need not look at it again and again."""
        await wait_synced(self._runtime, self._tools.logger, lambda: self._tools.scrape.leading)
        self._tools.logger.info("cluster state synced", nodes=node_count(self._runtime))
        gc.collect()
        gc.freeze()

    def _operator(self, controllers: Iterable[Controller]) -> Operator:
        tools = self._tools
        return Operator(list(controllers), tools.clock, tools.random, tools.logger)


async def wait_synced(runtime: Runtime, logger: Logger, leads: Callable[[], bool]) -> None:
    """Wait until every kind was listed once; while this process leads, tell of a wait that is too long.

    Args:
        runtime: the mirrored cluster.
        logger: told.
        leads: whether this process leads; one that stands by may mirror nothing yet.
    """
    waited = timedelta()
    while True:
        try:
            await asyncio.wait_for(runtime.wait_synced(), _IMPATIENCE.total_seconds())
        except TimeoutError:
            waited = waited + _IMPATIENCE if leads() else timedelta()
        else:
            return
        if waited > _PATIENCE:
            missing = list(runtime.state.unsynced_kinds())
            logger.error("cluster is waiting on sync for extended duration", duration=waited, kinds=missing)
