"""The embedded world: cluster, cloud and controllers in one process.

The controllers are the real ones, over the real Linode client and provider; what lies beyond the two APIs is played.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import httpx2

from karpenter_linode.cluster.pending import pending_pods
from karpenter_linode.controllers.provisioner import Provisioner
from karpenter_linode.controllers.runtime import Runtime
from karpenter_linode.linode.client import LinodeClient
from karpenter_linode.linode.discovery import discover_cluster
from karpenter_linode.linode.provider import LinodeCloudProvider
from karpenter_linode.linode.provider_options import ProviderOptions
from karpenter_linode.linode.tables import bundled_availability, bundled_regions, bundled_types
from karpenter_linode.model.core import Pod
from karpenter_linode.model.reason import Reason
from karpenter_linode.operator.history import History
from karpenter_linode.operator.options import Options
from karpenter_linode.operator.outcome import Outcome, UnplacedPod
from karpenter_linode.operator.quiescence import restless
from karpenter_linode.operator.wiring import Operator, controllers_of, settings_from
from karpenter_linode.scheduling.pods import is_terminal
from karpenter_linode.sim.clock import VirtualClock
from karpenter_linode.sim.cluster import DEFAULT_SETTINGS, Account, EmbeddedCluster, SimSettings
from karpenter_linode.sim.linode.world import DEFAULT_CLUSTER
from karpenter_linode.sim.loop import run_virtual

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from karpenter_linode.ports import Clock

    Scenario = Callable[["EmbeddedWorld"], Awaitable[None]]

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
_POLL: Final = 5.0
_REST: Final = 60.0  # how long nothing may be going on before the world counts as quiet
_REST_WITH_UNPLACED: Final = 240.0  # longer than the provider remembers that a plan was sold out
_TOKEN: Final = "embedded"  # noqa: S105 - the emulator takes any


class EmbeddedWorld:
    """A cluster, a cloud and the controllers. Build and use it inside the running loop of its clock.

    Args:
        manifests: plain objects to apply at the start.
        seed: decides every name and delay.
        options: settings of the controllers.
        scenario: what happens beside the manifests; runs with the world, and the world is not quiet before it ends.
        settings: how the world around the controllers behaves.
        account: what Linode sells; the bundled plans by default.
        clock: time; virtual time from ``START`` by default.
    """

    def __init__(
        self,
        manifests: Sequence[Mapping[str, Any]],
        *,
        seed: int = 0,
        options: Options | None = None,
        scenario: Scenario | None = None,
        settings: SimSettings = DEFAULT_SETTINGS,
        account: Account | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.clock = clock or VirtualClock(asyncio.get_running_loop(), START)
        self.options = options or Options()
        self.seed = seed
        self.cluster = EmbeddedCluster(self.clock, account or bundled_account(), seed=seed, settings=settings)
        self.history = History(self.cluster, settings.keep)
        self.started = self.clock.now()
        self._manifests, self._scenario = manifests, scenario
        self._controller: _Controller | None = None
        self._lives = 0

    @property
    def runtime(self) -> Runtime:
        """Ports and mirrored state of the controller that runs now."""
        if self._controller is None:
            msg = "no controller is running"
            raise RuntimeError(msg)
        return self._controller.runtime

    async def run(self, limit_seconds: float) -> Outcome:
        """Start everything, run until the world is quiet or the limit is reached, and stop.

        Args:
            limit_seconds: virtual seconds.
        """
        await self.start()
        try:
            scenario = asyncio.ensure_future(self._scenario(self)) if self._scenario is not None else None
            quiet = await self.run_until_quiet(limit_seconds, scenario)
            outcome = self.outcome(quiet=quiet)
            if scenario is not None:
                await _ended(scenario)
        finally:
            await self.stop()
        return outcome

    async def live(self, ended: asyncio.Event, limit_seconds: float | None = None) -> Outcome:
        """Once started: go on, quiet or not, until told to end; then stop.

        Args:
            ended: set from outside when it is enough.
            limit_seconds: seconds of the world's time after which it ends by itself; None for no limit.

        Raises:
            Exception: the first error that a part of the world met; it ends the world at once.
        """
        scenario = asyncio.ensure_future(self._scenario(self)) if self._scenario is not None else None
        try:
            while not ended.is_set() and self.cluster.agenda.failure is None:
                left = _POLL if limit_seconds is None else min(_POLL, limit_seconds - self._seconds())
                if left <= 0:
                    break
                with suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), left)
            outcome = self.outcome(quiet=ended.is_set())
            if scenario is not None:
                await _ended(scenario)
        finally:
            await self.stop()
        return outcome

    async def start(self) -> None:
        """Start the cluster, apply the manifests, start the controller."""
        self.cluster.start()
        self.cluster.apply(self._manifests)
        self.cluster.install_device_classes()
        await self.start_controller()

    async def stop(self) -> None:
        """Stop everything. Raises the first error that a part of the world met."""
        await self.kill_controller()
        await self.cluster.stop()

    async def start_controller(self) -> None:
        """Start a controller process: it knows nothing but what the two APIs tell it."""
        self._lives += 1
        self._controller = await _Controller.start(self, self._lives)

    async def kill_controller(self) -> None:
        """End the controller process wherever it stands."""
        controller, self._controller = self._controller, None
        if controller is not None:
            await controller.stop()

    async def run_until(self, condition: Callable[[], bool], limit_seconds: float, step: float = 1.0) -> bool:
        """Let time pass until a condition holds.

        Returns:
            Whether it came to hold within the limit.
        """
        end = self._seconds() + limit_seconds
        while not condition():
            if self._seconds() >= end:
                return False
            await self.clock.sleep(step)
        return True

    async def run_until_quiet(self, limit_seconds: float, scenario: asyncio.Future[None] | None = None) -> bool:
        """Let time pass until nothing has been going on for a while; whether that came within the limit."""
        end = self._seconds() + limit_seconds
        resting_since: float | None = None
        while self._seconds() < end:
            await self.clock.sleep(min(_POLL, end - self._seconds()))
            if self.restless() or (scenario is not None and not scenario.done()):
                resting_since = None
            elif resting_since is None:
                resting_since = self._seconds()
            elif self._seconds() - resting_since >= (_REST_WITH_UNPLACED if self._unplaced() else _REST):
                return True
        return False

    def restless(self) -> str:
        """What is going on, or ""."""
        if self._controller is None:
            return "no controller"
        if not self.runtime.state.synced():
            return "the controller starts"
        last = self._controller.provisioner.last
        machines = len(self.cluster.linode.billing.running())
        return restless(self.runtime.state, last[1] if last else None, self.cluster.pending, machines)

    def outcome(self, *, quiet: bool) -> Outcome:
        """What the run has come to so far."""
        now = self.clock.now()
        bill = self.history.bill(now)
        return Outcome(
            seed=self.seed,
            started=self.started,
            seconds=(now - self.started).total_seconds(),
            quiet=quiet,
            pods=self.history.pods(),
            node_claims=self.history.node_claims(),
            devices=self.history.devices(),
            bill=bill,
            billed_hours=sum(line.hours for line in bill),
            nano_dollars=sum(line.nano_dollars for line in bill),
            left=tuple(line for line in bill if line.until is None),
            unplaced=self._unplaced(),
            journal=self.history.journal(),
        )

    def _unplaced(self) -> tuple[UnplacedPod, ...]:
        reasons: dict[str, Reason] = {}
        if self._controller is not None:
            last = self._controller.provisioner.last
            reasons = {item.pod.uid: item.reason for item in last[1].unplaced} if last else {}
            reasons |= {pod.uid: reason for pod, reason in pending_pods(self.runtime.state).ignored}
        return tuple(
            UnplacedPod(pod.key, reasons.get(pod.uid) or _waiting(pod))
            for pod in self.cluster.store.all(Pod)
            if not pod.spec.node_name and not is_terminal(pod)
        )

    def _seconds(self) -> float:
        return (self.clock.now() - self.started).total_seconds()


class _Controller:
    """One life of the controller process."""

    def __init__(
        self,
        runtime: Runtime,
        provisioner: Provisioner,
        operator: Operator,
        provider: LinodeCloudProvider,
        client: LinodeClient,
    ) -> None:
        self.runtime, self.provisioner, self.operator = runtime, provisioner, operator
        self._provider, self._client = provider, client

    @staticmethod
    async def start(world: EmbeddedWorld, life: int) -> _Controller:
        cluster, clock, options = world.cluster, world.clock, world.options
        random = cluster.random.child(f"controller/{life}")
        kube, logger, events = cluster.kube_api(), cluster.logger(), cluster.events()
        client = LinodeClient(
            "http://linode.embedded",
            _TOKEN,
            clock=clock,
            random=random.child("linode-client"),
            transport=httpx2.ASGITransport(app=cluster.linode_app),
        )
        provider = LinodeCloudProvider(
            client,
            await discover_cluster(client, DEFAULT_CLUSTER.label),
            kube,
            clock=clock,
            random=random.child("provider"),
            logger=logger,
            events=events,
            options=ProviderOptions(ignore_dra_requests=options.ignore_dra_requests),
        )
        runtime = Runtime(
            kube,
            provider,
            clock,
            random.child("controllers"),
            events,
            cluster.metrics,
            logger,
            settings_from(options),
        )
        controllers = controllers_of(runtime)
        provisioner = next(item for item in controllers if isinstance(item, Provisioner))
        operator = Operator(controllers, clock, random.child("operator"), logger)
        operator.start()
        return _Controller(runtime, provisioner, operator, provider, client)

    async def stop(self) -> None:
        await self.operator.stop()
        await self._provider.close()
        await self._client.close()


def bundled_account() -> Account:
    """An account that sees every bundled plan."""
    return Account(
        types=bundled_types(),
        regions=bundled_regions(),
        availability=bundled_availability(DEFAULT_CLUSTER.region),
    )


def run_embedded(
    manifests: Sequence[Mapping[str, Any]],
    *,
    seed: int = 0,
    options: Options | None = None,
    scenario: Scenario | None = None,
    settings: SimSettings = DEFAULT_SETTINGS,
    limit_seconds: float = 7200.0,
) -> Outcome:
    """Run a world under the virtual-time loop and return what it came to. Equal arguments give equal outcomes."""

    async def live() -> Outcome:
        world = EmbeddedWorld(manifests, seed=seed, options=options, scenario=scenario, settings=settings)
        return await world.run(limit_seconds)

    return run_virtual(live())


async def _ended(scenario: asyncio.Future[None]) -> None:
    if not scenario.done():
        scenario.cancel()
        await asyncio.gather(scenario, return_exceptions=True)
    else:
        scenario.result()


def _waiting(pod: Pod) -> Reason:
    condition = next((item for item in pod.status.conditions if item.type == "PodScheduled"), None)
    message = condition.message if condition is not None else ""
    return Reason("pending", message or "the pod waits to be scheduled", subject=f"Pod {pod.key}")
