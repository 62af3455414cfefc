"""Virtual time for asyncio: when nothing is ready, the clock jumps to the next timer.

An hour of waiting costs nothing, and equal programs run their tasks in equal order. Sockets, threads and subprocesses
have no place here: the loop refuses them, since nobody can tell when they would answer in virtual time.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, TypeVar, TypeVarTuple, Unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Executor

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

MAX_IDLE_TURNS: Final = 200_000
"""Turns of the loop at one instant after which a program counts as livelocked."""


class VirtualTimeError(RuntimeError):
    """A program cannot go on in virtual time."""


class DeadlockError(VirtualTimeError):
    """Every task waits for something that no timer will bring."""


class LivelockError(VirtualTimeError):
    """Tasks keep each other busy without time passing."""


class _TimeSelector:
    """Stands where the base loop would wait for sockets: waiting means moving the clock."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._idle_turns = 0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise DeadlockError(f"no task can go on and no timer is set; waiting: {self._loop.describe_tasks()}")
        if timeout > 0:
            self._idle_turns = 0
            self._loop.jump()
            return []
        self._idle_turns += 1
        if self._idle_turns > MAX_IDLE_TURNS:
            self._idle_turns = 0
            raise LivelockError(
                f"{MAX_IDLE_TURNS} turns at virtual second {self._loop.time()} without time passing; "
                f"tasks: {self._loop.describe_tasks()}"
            )
        return []

    def close(self) -> None:
        """Nothing is held."""


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop whose ``time()`` is virtual seconds since its start.

    Use it through ``run_virtual`` or ``asyncio.Runner(loop_factory=VirtualLoop)``.
    """

    _scheduled: list[asyncio.TimerHandle]

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._selector = _TimeSelector(self)

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._now

    def jump(self) -> None:
        """Move the clock to the earliest timer."""
        self._now = max(self._now, self._scheduled[0].when())

    def describe_tasks(self) -> str:
        """Names of the coroutines of unfinished tasks, for messages."""
        names = (getattr(task.get_coro(), "__qualname__", task.get_name()) for task in asyncio.all_tasks(self))
        return ", ".join(sorted(names)) or "none"

    def _process_events(self, event_list: list[Any]) -> None:
        """No sockets, no events."""

    def _write_to_self(self) -> None:
        """Nothing to wake: the loop never sleeps."""

    def run_in_executor(
        self,
        executor: Executor | None,  # noqa: ARG002  # the base's signature
        func: Callable[[Unpack[Ts]], T],
        *args: *Ts,  # noqa: ARG002  # the base's signature
    ) -> asyncio.Future[T]:
        """Refuse threads: they run in real time."""
        raise VirtualTimeError(f"{func!r} wants a thread, which has no place in virtual time; make it a coroutine")

    def close(self) -> None:
        """Close the loop."""
        if not self.is_closed():
            self._selector.close()
        super().close()


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end under virtual time, then cancel the tasks it left behind.

    Raises:
        DeadlockError: every task waits and no timer is set.
        LivelockError: tasks keep each other busy without time passing.
    """
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
