"""Builds the controllers over their ports, and runs them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from karpenter_linode.controllers.batcher import Batcher
from karpenter_linode.controllers.disruption import Disruption
from karpenter_linode.controllers.garbage_collection import InstanceGarbageCollection, NodeClaimGarbageCollection
from karpenter_linode.controllers.mirror import Mirror
from karpenter_linode.controllers.node_pool import NodeClassController, NodePoolController, NodePoolCounter
from karpenter_linode.controllers.node_termination import EvictionQueue, NodeTermination
from karpenter_linode.controllers.nodeclaim_lifecycle import NodeClaimLifecycle
from karpenter_linode.controllers.nodeclaim_upkeep import (
    NodeClaimDisruption,
    NodeClaimExpiration,
    NodeClaimPodEvents,
)
from karpenter_linode.controllers.provisioner import Provisioner
from karpenter_linode.controllers.settings import Settings
from karpenter_linode.controllers.timing import Backoff
from karpenter_linode.controllers.triggers import NodeTrigger, PodTrigger
from karpenter_linode.lifecycle.step import LifecycleSettings

if TYPE_CHECKING:
    from karpenter_linode.controllers.reconciler import Controller
    from karpenter_linode.controllers.runtime import Runtime
    from karpenter_linode.operator.options import Options
    from karpenter_linode.ports import Clock, Logger, Random

_RESTART: Final = Backoff(1.0, 60.0)


def settings_from(options: Options) -> Settings:
    """The part of the options that the controllers need."""
    return Settings(
        scheduling=options.scheduling(),
        lifecycle=LifecycleSettings(
            ignore_dra_requests=options.ignore_dra_requests,
            launch_timeout=options.launch_timeout,
            registration_timeout=options.registration_timeout,
        ),
        batch_idle_duration=options.batch_idle_duration,
        batch_max_duration=options.batch_max_duration,
        workers=options.workers,
        launch_workers=options.launch_workers,
        drain_workers=options.drain_workers,
    )


def controllers_of(runtime: Runtime) -> list[Controller]:
    """Every controller over a runtime. Subscriptions are made here, before the first object arrives."""
    batcher = Batcher(runtime.clock, runtime.settings.batch_idle_duration, runtime.settings.batch_max_duration)
    evictions = EvictionQueue(runtime)
    return [
        PodTrigger(runtime, batcher),
        NodeTrigger(runtime, batcher),
        NodeClassController(runtime),
        NodePoolController(runtime),
        NodePoolCounter(runtime),
        NodeClaimLifecycle(runtime),
        NodeClaimExpiration(runtime),
        NodeClaimDisruption(runtime),
        NodeClaimPodEvents(runtime),
        NodeTermination(runtime, evictions),
        evictions,
        NodeClaimGarbageCollection(runtime),
        InstanceGarbageCollection(runtime),
        Disruption(runtime),
        Provisioner(runtime, batcher),
        *(Mirror(runtime, kind) for kind in runtime.state.kinds),
    ]


class Operator:
    """Runs controllers side by side; one that crashes is logged and started again.

    Args:
        controllers: what to run.
        clock: waits before a restart.
        random: jitter.
        logger: tells of crashes.
    """

    def __init__(self, controllers: list[Controller], clock: Clock, random: Random, logger: Logger) -> None:
        self._controllers = controllers
        self._clock, self._random, self._logger = clock, random, logger
        self._tasks: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        """Run until ``stop``, or until cancelled."""
        self.start()
        try:
            await asyncio.gather(*self._tasks)
        except asyncio.CancelledError:
            await self.stop()
            raise

    def start(self) -> None:
        """Start without waiting."""
        self._tasks = [
            asyncio.create_task(self._keep_running(controller), name=controller.name)
            for controller in self._controllers
        ]

    async def stop(self) -> None:
        """Cancel every controller and wait until all have ended."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep_running(self, controller: Controller) -> None:
        crashes = 0
        while (crash := await _crash_of(controller)) is not None:
            crashes += 1
            error = f"{type(crash).__name__}: {crash}"
            text = "controller crashed, starting it again"
            self._logger.error(text, controller=controller.name, error=error, exc_info=crash)
            await self._clock.sleep(_RESTART.delay(crashes, self._random))


async def _crash_of(controller: Controller) -> Exception | None:
    """Run a controller; what ended it, or None when it ended by itself."""
    try:
        await controller.run()
    except Exception as error:  # noqa: BLE001 - whatever it was, the other controllers go on
        return error
    return None
