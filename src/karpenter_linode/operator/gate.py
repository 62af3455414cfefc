"""The gate that every write passes on its way to the network: shut unless this process leads and is not ending."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import httpx2

from karpenter_linode.ports import KubeError

if TYPE_CHECKING:
    from collections.abc import Callable

_READS: Final = frozenset({"GET", "HEAD"})


class WriteGate:
    """Lets writes through, counts those under way, and can be shut for good.

    A process that lost its lease while it was paused finds the gate shut when it wakes, before it has noticed anything.
    At the end of the process the gate shuts first; what is under way is waited for, so that no answer is lost.

    Args:
        check: raises KubeError where this process may not act.
    """

    def __init__(self, check: Callable[[], None] | None = None) -> None:
        self._check = check
        self._shut = False
        self._under_way = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def enter(self, request: httpx2.Request) -> None:
        """Begin a write. Raises ConnectError, as nothing was sent."""
        if self._shut:
            raise httpx2.ConnectError("this process is ending; nothing more is written", request=request)
        try:
            if self._check is not None:
                self._check()
        except KubeError as error:
            raise httpx2.ConnectError(str(error), request=request) from None
        self._under_way += 1
        self._idle.clear()

    def leave(self) -> None:
        """End a write."""
        self._under_way -= 1
        if self._under_way == 0:
            self._idle.set()

    async def drain(self, seconds: float) -> int:
        """Shut the gate and wait for what is under way; returns how many writes had not ended in time."""
        self._shut = True
        try:
            await asyncio.wait_for(self._idle.wait(), seconds)
        except TimeoutError:
            return self._under_way
        return 0


class GatedTransport(httpx2.AsyncBaseTransport):
    """A transport whose writes pass a gate.

    Args:
        inner: the network.
        gate: the gate.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport, gate: WriteGate) -> None:
        self._inner, self._gate = inner, gate

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request."""
        if request.method in _READS:
            return await self._inner.handle_async_request(request)
        self._gate.enter(request)
        try:
            response = await self._inner.handle_async_request(request)
            await response.aread()
        finally:
            self._gate.leave()
        return response

    async def aclose(self) -> None:
        """Close connections."""
        await self._inner.aclose()
