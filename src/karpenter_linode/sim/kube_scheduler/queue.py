"""Pods that wait: ready to be tried, backing off, or unschedulable until something changes."""

from __future__ import annotations

import asyncio
import heapq
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from karpenter_linode.sim.kube_scheduler.view import PodInfo

if TYPE_CHECKING:
    from collections.abc import Callable

    from karpenter_linode.sim.context import SimContext

FIRST_BACKOFF: Final = 1.0
LAST_BACKOFF: Final = 10.0
FLUSH_AFTER: Final = 300.0
"""Seconds after which an unschedulable pod is tried again even though nothing happened."""


class Waiting(Struct):
    """A pod in the queue."""

    info: PodInfo
    order: int
    attempts: int = 0
    state: str = "active"
    tried_at: float = 0.0


class SchedulingQueue:
    """Orders pods by priority, then by age.

    Args:
        context: the world.
    """

    def __init__(self, context: SimContext) -> None:
        self._context = context
        self._pods: dict[str, Waiting] = {}
        self._heap: list[tuple[int, int, str]] = []
        self._order = 0
        self._wake: asyncio.Future[None] | None = None

    def put(self, info: PodInfo) -> None:
        """Add a pod, or take in its new version. A changed pod is worth another try."""
        waiting = self._pods.get(info.pod.key)
        if waiting is None or waiting.info.pod.uid != info.pod.uid:
            self._order += 1
            waiting = self._pods[info.pod.key] = Waiting(info, self._order)
            self._activate(waiting)
            return
        changed = _decisive(waiting.info) != _decisive(info)
        waiting.info = info
        if changed and waiting.state == "unschedulable":
            self._back_off(waiting)

    def remove(self, pod_key: str) -> None:
        """Forget a pod."""
        self._pods.pop(pod_key, None)

    async def next(self) -> Waiting:
        """The pod to try now."""
        while True:
            while self._heap:
                _, order, key = heapq.heappop(self._heap)
                waiting = self._pods.get(key)
                if waiting is not None and waiting.order == order and waiting.state == "active":
                    waiting.state = "trying"
                    waiting.attempts += 1
                    return waiting
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake

    def park(self, waiting: Waiting) -> None:
        """The pod cannot be placed: wait for a change."""
        if self._pods.get(waiting.info.pod.key) is waiting:
            waiting.state = "unschedulable"
            waiting.tried_at = self._context.clock.now().timestamp()
            self._context.agenda.after(FLUSH_AFTER, self._flush, waiting, waiting.attempts, background=True)

    def retry(self, waiting: Waiting) -> None:
        """The attempt failed by accident: try again after the back-off."""
        if self._pods.get(waiting.info.pod.key) is waiting:
            waiting.tried_at = self._context.clock.now().timestamp()
            self._back_off(waiting)

    def wake(self, helps: Callable[[PodInfo], bool]) -> None:
        """Something changed: unschedulable pods that it may help are tried again, after their back-off."""
        for waiting in list(self._pods.values()):
            if waiting.state == "unschedulable" and helps(waiting.info):
                self._back_off(waiting)

    def _back_off(self, waiting: Waiting) -> None:
        backoff = min(LAST_BACKOFF, FIRST_BACKOFF * 2.0 ** max(0, waiting.attempts - 1))
        left = waiting.tried_at + backoff - self._context.clock.now().timestamp()
        if left <= 0:
            self._activate(waiting)
            return
        waiting.state = "backoff"
        self._context.agenda.after(left, self._backoff_over, waiting)

    def _backoff_over(self, waiting: Waiting) -> None:
        if waiting.state == "backoff" and self._pods.get(waiting.info.pod.key) is waiting:
            self._activate(waiting)

    def _flush(self, waiting: Waiting, attempts: int) -> None:
        if waiting.state == "unschedulable" and waiting.attempts == attempts:
            self._back_off(waiting)

    def _activate(self, waiting: Waiting) -> None:
        waiting.state = "active"
        heapq.heappush(self._heap, (-(waiting.info.pod.spec.priority or 0), waiting.order, waiting.info.pod.key))
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


def _decisive(info: PodInfo) -> tuple[object, ...]:
    """What of a pod may change a verdict: not its conditions, which the scheduler itself writes."""
    pod = info.pod
    return info.shape, pod.spec.scheduling_gates, pod.status.resource_claim_statuses
