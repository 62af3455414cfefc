"""Clocks of the embedded world."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta


class VirtualClock:
    """``ports.Clock`` over a loop's time: ``start`` plus the loop's seconds.

    Args:
        loop: normally a ``VirtualLoop``; any loop's ``time()`` will do.
        start: aware UTC time at loop time 0.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, start: datetime) -> None:
        self._loop = loop
        self._start = start

    def now(self) -> datetime:
        """Aware UTC time, to the microsecond."""
        return self._start + timedelta(seconds=self._loop.time())

    async def sleep(self, seconds: float) -> None:
        """Let virtual time pass."""
        await asyncio.sleep(seconds)


class WallClock:
    """``ports.Clock`` over real time."""

    def now(self) -> datetime:
        """Aware UTC time."""
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)
