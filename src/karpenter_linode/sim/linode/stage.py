"""What every part of the emulated cloud stands on: time, chance, background work, listeners, the invoice."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Any

from karpenter_linode.sim.linode.billing import BillingLedger

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from karpenter_linode.ports import Clock, Random
    from karpenter_linode.sim.linode.delays import LinodeDelays, Span
    from karpenter_linode.sim.linode.events import CloudEvent
    from karpenter_linode.sim.linode.faults import LinodeFaults


class Stage:
    """Shared by machines and pools. Ids are counted, names and delays drawn from the given randomness."""

    def __init__(self, clock: Clock, random: Random, delays: LinodeDelays, faults: LinodeFaults) -> None:
        self.clock, self.random, self.delays, self.faults = clock, random, delays, faults
        self.billing = BillingLedger()
        self.listeners: list[Callable[[CloudEvent], None]] = []
        self._machine_ids = itertools.count(75_000_001)
        self._pool_ids = itertools.count(800_001)
        self._tasks: set[asyncio.Task[None]] = set()

    def next_machine_id(self) -> int:
        """A Linode id."""
        return next(self._machine_ids)

    def next_pool_id(self) -> int:
        """A pool id."""
        return next(self._pool_ids)

    def hexadecimal(self, digits: int) -> str:
        """Random lower-case hexadecimal digits."""
        return "".join(f"{min(15, int(self.random.uniform(0, 16))):x}" for _ in range(digits))

    def seconds(self, span: Span) -> float:
        """A delay."""
        return self.random.uniform(*span)

    async def pause(self, span: Span) -> None:
        """Let a drawn delay pass."""
        if (seconds := self.seconds(span)) > 0:
            await self.clock.sleep(seconds)

    def publish(self, event: CloudEvent) -> None:
        """Tell everybody who subscribed, in the order in which they did."""
        for listener in tuple(self.listeners):
            listener(event)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something beside the calls. A failure is a bug of the emulator and reaches the loop's handler."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def close(self) -> None:
        """Stop the passing of time for all machines."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            task.get_loop().call_exception_handler({"message": "the emulated cloud failed", "exception": error})
