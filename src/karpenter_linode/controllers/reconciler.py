"""The two shapes of a controller: one that works through a queue of objects, and one that repeats a pass."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from karpenter_linode.controllers.queue import WorkQueue
from karpenter_linode.controllers.scope import SCOPE, Scope
from karpenter_linode.controllers.timing import Backoff
from karpenter_linode.ports import CloudError, KubeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from karpenter_linode.controllers.effects import Done
    from karpenter_linode.controllers.runtime import Runtime
    from karpenter_linode.model.meta import KubeObject

_AFTER_CONFLICT: Final = 0.1
_STANDING: Final = 10
_DEFAULT_BACKOFF: Final = Backoff(0.1, 60.0)


class Controller(Protocol):
    """Something that runs until it is cancelled."""

    name: str

    async def run(self) -> None:
        """Run."""
        ...


class Record:
    """Counts reconciles as controller-runtime does, whose names dashboards know.

    Args:
        name: the controller's name.
        runtime: clock and metrics.
    """

    def __init__(self, name: str, runtime: Runtime) -> None:
        self._runtime, self._labels = runtime, {"controller": name}

    def ended(self, result: str) -> None:
        """One ended: ``success``, ``requeue``, ``requeue_after`` or ``error``."""
        self._runtime.metrics.increment("controller_runtime_reconcile_total", {**self._labels, "result": result})
        if result == "error":
            self._runtime.metrics.increment("controller_runtime_reconcile_errors_total", self._labels)

    def fault(self) -> None:
        """One ended by a bug of ours."""
        self._runtime.metrics.increment("controller_runtime_reconcile_panics_total", self._labels)

    def took(self, began: datetime) -> None:
        """How long it took."""
        seconds = (self._runtime.now() - began).total_seconds()
        self._runtime.metrics.observe("controller_runtime_reconcile_time_seconds", self._labels, seconds)


class Reconciler:
    """Works through keys, several at a time, each by one worker.

    Args:
        name: the controller's name.
        runtime: ports and state.
        reconcile: decides and acts on one key; None means that there was nothing to do.
        workers: keys at a time, at most; few of the workers are there all the time.
        backoff: for keys whose work failed.
        kind: kind of the objects that the keys name, if they name objects.
    """

    def __init__(
        self,
        name: str,
        runtime: Runtime,
        reconcile: Callable[[str], Awaitable[Done | None]],
        *,
        workers: int = 10,
        backoff: Backoff = _DEFAULT_BACKOFF,
        kind: type[KubeObject] | None = None,
    ) -> None:
        self.name = name
        self.workers = workers
        self.queue = WorkQueue(runtime.clock, runtime.random, backoff, runtime.metrics, name)
        self._runtime = runtime
        self._reconcile = reconcile
        self._kind = kind
        self._record = Record(name, runtime)
        self._present = self._busy = 0

    @property
    def busy(self) -> int:
        """Workers that work now."""
        return self._busy

    async def run(self) -> None:
        """Work until cancelled."""
        await self._runtime.wait_synced()
        self._present = self._busy = 0
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self.workers, _STANDING)):
                    self._hire(group, standing=True)
                self._reinforce(group)
                self.queue.when_ready = partial(self._reinforce, group)
                try:
                    await asyncio.Event().wait()
                finally:  # nobody joins a group that breaks up
                    self.queue.when_ready = _nothing
        finally:
            self.queue.close()

    def _reinforce(self, group: asyncio.TaskGroup) -> None:
        """More workers where keys wait and everybody is busy; they leave when nothing waits any more."""
        while self._present < self.workers and self.queue.ready > self._present - self._busy:
            self._hire(group, standing=False)

    def _hire(self, group: asyncio.TaskGroup, *, standing: bool) -> None:
        self._present += 1
        group.create_task(self._work(standing=standing))

    async def _work(self, *, standing: bool) -> None:
        while standing or self.queue.ready:
            key = await self.queue.take()
            self._busy += 1
            SCOPE.set(Scope(self.name, self._kind, key))
            began = self._runtime.now()
            try:
                self._settle(key, await self._reconcile(key))
            except (KubeError, CloudError) as error:
                self._failed(key, str(error))
            except Exception as error:  # noqa: BLE001 - one object's bug must not stop the others; it is logged and retried
                self._record.fault()
                self._failed(key, f"{type(error).__name__}: {error}", exc_info=error)
            finally:
                self._record.took(began)
                self._busy -= 1
                self.queue.done(key)
        self._present -= 1

    def _settle(self, key: str, done: Done | None) -> None:
        if done is not None and done.failures:
            self._failed(key, "; ".join(done.failures))
            return
        if done is not None and done.retry:
            self._record.ended("requeue")
            self.queue.retry(key)
            return
        if done is not None and done.conflict:
            self._record.ended("requeue")
            self.queue.add_after(key, _AFTER_CONFLICT)
            return
        self.queue.succeeded(key)
        if done is not None and done.requeue is not None:
            self._record.ended("requeue_after")
            self.queue.add_after(key, done.requeue.total_seconds())
        else:
            self._record.ended("success")

    def _failed(self, key: str, error: str, **fields: Any) -> None:
        self._record.ended("error")
        self._runtime.logger.error("Reconciler error", controller=self.name, name=key, error=error, **fields)
        self.queue.retry(key)


class Loop:
    """Repeats a pass. The pass says how long to wait before the next one.

    Args:
        name: the controller's name.
        runtime: ports and state.
        step: one pass; returns seconds to wait.
        backoff: after passes that failed.
    """

    def __init__(
        self,
        name: str,
        runtime: Runtime,
        step: Callable[[], Awaitable[float]],
        *,
        backoff: Backoff = _DEFAULT_BACKOFF,
    ) -> None:
        self.name = name
        self._runtime = runtime
        self._step = step
        self._backoff = backoff
        self._record = Record(name, runtime)

    async def run(self) -> None:
        """Repeat until cancelled."""
        await self._runtime.wait_synced()
        failures = 0
        while True:
            SCOPE.set(Scope(self.name))
            began = self._runtime.now()
            try:
                wait = await self._step()
                failures = 0
                self._record.ended("requeue_after" if wait else "success")
            except (KubeError, CloudError) as error:
                failures += 1
                wait = self._failed(failures, str(error))
            except Exception as error:  # noqa: BLE001 - a bug in one pass must not end the controller; logged and retried
                failures += 1
                self._record.fault()
                wait = self._failed(failures, f"{type(error).__name__}: {error}", exc_info=error)
            self._record.took(began)
            await self._runtime.clock.sleep(wait)

    def _failed(self, failures: int, error: str, **fields: Any) -> float:
        self._record.ended("error")
        self._runtime.logger.error("Reconciler error", controller=self.name, error=error, **fields)
        return self._backoff.delay(failures, self._runtime.random)


def _nothing() -> None:
    return
