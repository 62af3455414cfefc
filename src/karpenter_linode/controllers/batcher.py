"""Batches of pending pods: one window closes after a second of quiet, or after ten at most (scheduling spec 1.4)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from karpenter_linode.controllers.timing import wait_for_event

if TYPE_CHECKING:
    from datetime import timedelta

    from karpenter_linode.ports import Clock


class Batcher:
    """Collects triggers.

    Args:
        clock: time.
        idle: a window closes after this much quiet.
        longest: a window never stays open longer.
    """

    def __init__(self, clock: Clock, idle: timedelta, longest: timedelta) -> None:
        self._clock = clock
        self._idle = idle.total_seconds()
        self._longest = longest.total_seconds()
        self._seen: dict[str, None] = {}
        self._signal = asyncio.Event()

    def trigger(self, uid: str) -> None:
        """Something wants a scheduling pass. The same thing again in one window does not keep it open."""
        if uid not in self._seen:
            self._seen[uid] = None
            self._signal.set()

    async def opened(self) -> None:
        """Wait for the trigger that opens a window; ``wait`` is still to follow."""
        await self._signal.wait()

    async def wait(self) -> None:
        """Wait for a trigger, then for the end of the window that it opened."""
        await self._signal.wait()
        opened = self._seconds()
        while True:
            self._signal.clear()
            left = opened + self._longest - self._seconds()
            if left <= 0 or not await wait_for_event(self._signal, self._clock, min(self._idle, left)):
                break
        self._seen.clear()
        self._signal.clear()

    def _seconds(self) -> float:
        return self._clock.now().timestamp()
