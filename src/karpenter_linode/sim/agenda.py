"""What the embedded world has set itself to do later. Nothing in it polls; it acts on changes and on the agenda."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVarTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from karpenter_linode.ports import Clock

Ts = TypeVarTuple("Ts")


class Appointment:
    """An action to come."""

    def __init__(self, task: asyncio.Task[None]) -> None:
        self._task = task

    def cancel(self) -> None:
        """Call it off, unless it has happened."""
        self._task.cancel()


class Agenda:
    """Actions at later times, and tasks that run until the end.

    A failing action never goes unnoticed: the first error is kept and ``check`` raises it.

    Args:
        clock: waits.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tasks: dict[asyncio.Task[None], bool] = {}
        self.failure: BaseException | None = None

    @property
    def pending(self) -> int:
        """Actions still to come, without the background ones."""
        return sum(self._tasks.values())

    def after(self, seconds: float, action: Callable[[*Ts], None], *args: *Ts, background: bool = False) -> Appointment:
        """Call ``action`` once that time has passed.

        Args:
            seconds: from now.
            action: what to do.
            args: its arguments.
            background: housekeeping for which nobody waits; it does not count as pending.
        """
        return Appointment(self._keep(self._later(seconds, action, *args), counts=not background))

    def run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine for as long as the world lives."""
        _ = self._keep(coroutine, counts=False)

    async def _later(self, seconds: float, action: Callable[[*Ts], None], *args: *Ts) -> None:
        await self._clock.sleep(seconds)
        action(*args)

    def _keep(self, coroutine: Coroutine[Any, Any, None], *, counts: bool) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks[task] = counts
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        if not task.cancelled() and task.exception() is not None and self.failure is None:
            self.failure = task.exception()

    def check(self) -> None:
        """Raise the first error of an action, if there was one."""
        if self.failure is not None:
            raise self.failure

    async def close(self) -> None:
        """Call off everything that is left."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
