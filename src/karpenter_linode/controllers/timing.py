"""Waiting by the world's clock."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from karpenter_linode.ports import Clock, Random

_JITTER: Final = 0.1
_MAX_DOUBLINGS: Final = 30


class Backoff(Struct, frozen=True):
    """Exponential back-off in seconds: ``base``, doubled for each failure, never above ``cap``, and a little jitter."""

    base: float
    cap: float

    def delay(self, failures: int, random: Random) -> float:
        """Seconds to wait after that many failures in a row (at least one)."""
        plain = min(self.cap, self.base * (1 << min(failures - 1, _MAX_DOUBLINGS)))
        return plain * random.uniform(1 - _JITTER, 1 + _JITTER)


async def wait_for_event(event: asyncio.Event, clock: Clock, seconds: float) -> bool:
    """Wait for an event, but no longer than that.

    Returns:
        Whether the event came.
    """
    waiter = asyncio.create_task(event.wait())
    timer = asyncio.create_task(_sleep(clock, seconds))
    await finish_first(waiter, timer)
    return event.is_set()


async def finish_first(*tasks: asyncio.Task[None] | asyncio.Task[bool]) -> None:
    """Wait until one task is done, then cancel the others, also when the caller is cancelled."""
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


async def _sleep(clock: Clock, seconds: float) -> None:
    await clock.sleep(seconds)
