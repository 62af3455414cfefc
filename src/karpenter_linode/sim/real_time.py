"""Real time, run faster: an event loop whose seconds pass several times as quickly as those of the wall clock.

Everything that waits in the embedded world waits through its loop, so the loop alone has to know the speed. Sockets and
signals work as in any other loop.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")


class _HastySelector(selectors.DefaultSelector):
    """Waits for sockets, but for a fraction of the time only."""

    def __init__(self, speed: float) -> None:
        super().__init__()
        self._speed = speed

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return super().select(timeout if timeout is None or timeout <= 0 else timeout / self._speed)


class AcceleratedLoop(asyncio.SelectorEventLoop):
    """An event loop whose ``time()`` is the seconds since its start, ``speed`` of them in each real one.

    Args:
        speed: how many seconds of the loop pass in a real one.
    """

    def __init__(self, speed: float) -> None:
        super().__init__(_HastySelector(speed))
        self.speed = speed
        self._began = time.monotonic()

    def time(self) -> float:
        """Seconds of the loop since it was made."""
        return (time.monotonic() - self._began) * self.speed


def run_accelerated(main: Callable[[], Coroutine[Any, Any, T]], speed: float) -> T:
    """Run a coroutine to its end, with the loop's seconds passing ``speed`` times as quickly as real ones."""
    with asyncio.Runner(loop_factory=lambda: AcceleratedLoop(speed)) as runner:
        return runner.run(main())
