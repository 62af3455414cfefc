"""Mirrors: list, then watch, each kind into the cluster state, for ever."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from karpenter_linode.controllers.hub import Change
from karpenter_linode.controllers.timing import Backoff
from karpenter_linode.ports import GoneError, KubeError

if TYPE_CHECKING:
    from karpenter_linode.controllers.runtime import Runtime
    from karpenter_linode.model.meta import KubeObject
    from karpenter_linode.ports import WatchEvent

_BACKOFF: Final = Backoff(0.8, 30.0)
_SILENCE: Final = 120.0  # seconds without an event or a bookmark after which a watch counts as dead


class Mirror:
    """Keeps one kind in the cluster state.

    An expired watch is answered by a new list that is compared with what is known, so that nothing is lost and nothing
    is told twice. A watch that says nothing at all for two minutes is opened again. Pauses grow while lists and watches
    fail, or expire one after another before anything was heard; the first list after an expired watch comes at once.

    Args:
        runtime: ports and state.
        kind: the kind.
    """

    def __init__(self, runtime: Runtime, kind: type[KubeObject]) -> None:
        self.name = f"mirror.{kind.PLURAL}"
        self._runtime = runtime
        self._kind = kind
        self._version = ""
        self._failures = 0  # in a row, without a sign of life between them; so are the next
        self._expired = 0
        self._heard = 0.0

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            try:
                if not self._version:
                    await self._list()
                await self._follow()
                self._failures = 0
            except GoneError as error:
                self._version = ""
                # A server that forgets faster than it lists is not asked for everything again at once.
                if self._expired:
                    await self._pause(error, self._expired)
                self._expired += 1
            except KubeError as error:
                self._failures += 1
                await self._pause(error, self._failures)

    async def _pause(self, error: KubeError, failures: int) -> None:
        delay = _BACKOFF.delay(failures, self._runtime.random)
        self._runtime.logger.warning(
            "watching failed, trying again", controller=self.name, kind=self._kind.KIND, error=str(error), delay=delay
        )
        await self._runtime.clock.sleep(delay)

    async def _list(self) -> None:
        listing = await self._runtime.kube.list(self._kind)
        before = {item.key: self._runtime.state.get(self._kind, item.key) for item in listing.items}
        changed, gone = self._runtime.state.relist(self._kind, listing.items, listing.resource_version)
        self._version = listing.resource_version
        for obj in gone:
            self._runtime.hub.publish(Change(obj, None, listed=True))
        for obj in changed:
            self._runtime.hub.publish(Change(before[obj.key], obj, listed=True))
        self._runtime.announce_sync()

    async def _follow(self) -> None:
        self._heard = self._seconds()
        reader = asyncio.create_task(self._read())
        while not reader.done() and self._seconds() - self._heard < _SILENCE:
            timer = asyncio.create_task(self._doze(self._heard + _SILENCE - self._seconds()))
            try:
                await asyncio.wait((reader, timer), return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError:
                reader.cancel()
                raise
            finally:
                timer.cancel()
        if reader.done():
            reader.result()
        else:
            reader.cancel()
            await asyncio.wait((reader,))

    async def _doze(self, seconds: float) -> None:
        await self._runtime.clock.sleep(seconds)

    async def _read(self) -> None:
        async for event in self._runtime.kube.watch(self._kind, self._version):
            self._heard = self._seconds()
            self._failures = self._expired = 0
            self._version = event.resource_version or self._version
            self._apply(event)

    def _apply(self, event: WatchEvent[KubeObject]) -> None:
        obj = event.object
        if obj is None or event.type == "BOOKMARK":
            return
        if event.type == "DELETED":
            gone = self._runtime.state.forget(obj)
            if gone is not None:
                self._runtime.hub.publish(Change(obj, None))
        else:
            self._runtime.observe(obj)

    def _seconds(self) -> float:
        return self._runtime.now().timestamp()
