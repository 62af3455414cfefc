"""Real time, run faster: an event loop whose seconds pass several times as quickly as those of the wall clock.

Everything that waits in the embedded world waits through its loop, so the loop alone has to know the speed. Sockets and
signals work as in any other loop.

Waiting is what goes faster. Work takes the time that it takes, or a request whose answer costs a tenth of a second
would miss a deadline of ten. A process that is held up (a busy machine, a laptop asleep) does not make the world
leap: a wait lasts no longer than was asked, however late it ends.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")

MOST_AT_ONCE: Final = 0.1
"""Seconds of work that count in one turn of the loop."""


class HastyClock:
    """Loop time: ``speed`` seconds in each real one that was spent waiting.

    Args:
        speed: how many seconds of the loop pass in a real one.
        real: the wall clock's seconds.
    """

    def __init__(self, speed: float, real: Callable[[], float] = time.monotonic) -> None:
        self.speed = speed
        self._real = real
        self._then, self._at = 0.0, real()

    def now(self) -> float:
        """Seconds of the loop; within a turn they are real ones, and go on for a little while only."""
        return self._then + min(self._real() - self._at, MOST_AT_ONCE)

    def wait(self, timeout: float | None, waiting: Callable[[float | None], T]) -> T:
        """Wait, and let the time pass that was waited, but no more than was asked for.

        Args:
            timeout: in the loop's seconds; None for as long as it takes.
            waiting: waits for that many real seconds.
        """
        entered, began = self.now(), self._real()
        real_timeout = timeout if timeout is None or timeout <= 0 else timeout / self.speed
        result = waiting(real_timeout)
        waited = (self._real() - began) * self.speed
        self._then = entered + (waited if timeout is None else min(waited, max(timeout, 0.0)))
        self._at = self._real()
        return result


class _HastySelector(selectors.DefaultSelector):
    """Waits for sockets, but for a fraction of the time only."""

    def __init__(self, clock: HastyClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return self._clock.wait(timeout, super().select)


class AcceleratedLoop(asyncio.SelectorEventLoop):
    """An event loop whose ``time()`` is the seconds since its start, ``speed`` of them in each real one of waiting.

    Args:
        speed: how many seconds of the loop pass in a real one.
    """

    def __init__(self, speed: float) -> None:
        self._hasty = HastyClock(speed)
        super().__init__(_HastySelector(self._hasty))

    def time(self) -> float:
        """Seconds of the loop since it was made."""
        return self._hasty.now()


def run_accelerated(main: Callable[[], Coroutine[Any, Any, T]], speed: float) -> T:
    """Run a coroutine to its end, with the loop's seconds passing ``speed`` times as quickly as real ones."""
    with asyncio.Runner(loop_factory=lambda: AcceleratedLoop(speed)) as runner:
        return runner.run(main())
