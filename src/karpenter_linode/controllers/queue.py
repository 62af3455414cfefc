"""A work queue: every key at most once, one worker for a key at a time, later keys and back-off."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from karpenter_linode.controllers.timing import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable

    from karpenter_linode.ports import Clock, Metrics, Random


class WorkQueue:
    """Keys waiting for a worker.

    A key that is added while it is worked on is worked on once more afterwards. A key that is added for later is
    forgotten when it is worked on sooner: whoever does the work says anew when to come back.

    Args:
        clock: waits.
        random: jitter.
        backoff: for keys that failed.
        metrics: where work is counted, if it is.
        name: of the controller, for metrics.
    """

    def __init__(
        self,
        clock: Clock,
        random: Random,
        backoff: Backoff | None = None,
        metrics: Metrics | None = None,
        name: str = "",
    ) -> None:
        self._clock = clock
        self._random = random
        self._backoff = backoff or Backoff(0.1, 60.0)
        self._ready: deque[str] = deque()
        self._waiting: dict[str, float] = {}
        self._working: dict[str, float] = {}
        self._later: dict[str, tuple[float, asyncio.Task[None]]] = {}
        self._failures: dict[str, int] = {}
        self._metrics, self._labels = metrics, {"name": name, "controller": name}
        self._wake = asyncio.Event()
        self.when_ready: Callable[[], None] = _nothing
        """Called whenever a key gets ready to be worked on."""

    @property
    def ready(self) -> int:
        """Keys that wait for a worker now."""
        return len(self._ready)

    @property
    def busy(self) -> bool:
        """Whether anything is worked on or ready to be."""
        return bool(self._ready or self._working)

    def under_way(self) -> tuple[float, ...]:
        """For how many seconds each key that is worked on now has been."""
        now = self._seconds()
        return tuple(now - began for began in self._working.values())

    def add(self, key: str) -> None:
        """Ask for a key to be worked on."""
        if key in self._waiting:
            return
        self._waiting[key] = self._seconds()
        self._count("workqueue_adds_total")
        if key not in self._working:
            self._ready.append(key)
            self._wake.set()
            self.when_ready()

    def add_after(self, key: str, seconds: float) -> None:
        """Ask for a key later; an earlier time wins."""
        if seconds <= 0:
            self.add(key)
            return
        due = self._seconds() + seconds
        present = self._later.get(key)
        if present is not None:
            if present[0] <= due:
                return
            present[1].cancel()
        self._later[key] = (due, asyncio.create_task(self._add_later(key, seconds)))

    def retry(self, key: str) -> None:
        """Ask for a key again after its back-off."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        self._count("workqueue_retries_total")
        self.add_after(key, self._backoff.delay(failures, self._random))

    def succeeded(self, key: str) -> None:
        """Start the back-off of a key anew."""
        self._failures.pop(key, None)

    async def take(self) -> str:
        """The next key. ``done`` must follow."""
        while not self._ready:
            self._wake.clear()
            await self._wake.wait()
        key = self._ready.popleft()
        now = self._seconds()
        self._observe("workqueue_queue_duration_seconds", now - self._waiting.pop(key))
        self._working[key] = now
        later = self._later.pop(key, None)
        if later is not None:
            later[1].cancel()
        return key

    def done(self, key: str) -> None:
        """The work on a key ended."""
        began = self._working.pop(key, None)
        if began is not None:
            self._observe("workqueue_work_duration_seconds", self._seconds() - began)
        if key in self._waiting:
            self._ready.append(key)
            self._wake.set()
            self.when_ready()

    def close(self) -> None:
        """Forget everything."""
        for _, task in self._later.values():
            task.cancel()
        self._later.clear()

    def _seconds(self) -> float:
        return self._clock.now().timestamp()

    def _count(self, name: str) -> None:
        if self._metrics is not None:
            self._metrics.increment(name, self._labels)

    def _observe(self, name: str, seconds: float) -> None:
        if self._metrics is not None:
            self._metrics.observe(name, self._labels, seconds)

    async def _add_later(self, key: str, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self._later.pop(key, None)
        self.add(key)


def _nothing() -> None:
    return
