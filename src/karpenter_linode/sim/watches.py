"""Watches: a bounded history of changes for each kind, and streams that replay and follow it."""

from __future__ import annotations

import asyncio
from collections import deque
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from karpenter_linode.ports import GoneError
from karpenter_linode.sim.stored import Stored

if TYPE_CHECKING:
    from collections.abc import Callable

    from karpenter_linode.ports import Clock

ChangeType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
HISTORY: Final = 10_000
"""Changes kept for each kind; watching from before them answers 410."""


def _no_lag() -> float:
    return 0.0


class Change(Struct, frozen=True):
    """One change, with the object's state after it (before it for ``DELETED``). A bookmark has no object.

    ``before`` is the object's state before it; nothing was there before an ``ADDED``.
    """

    type: ChangeType
    stored: Stored | None
    version: int
    at: datetime
    before: Stored | None = None


class Watch:
    """One client's stream. It ends when it is closed: a server does that at will, and clients watch again.

    Args:
        clock: tells how old a change is.
        backlog: changes to deliver first.
        lag: seconds after which a change is delivered.
        limit: changes that may wait; a client that falls further behind loses its stream. None for any number.
    """

    def __init__(self, clock: Clock, backlog: list[Change], lag: Callable[[], float], limit: int | None = None) -> None:
        self._clock = clock
        self._limit = limit
        self._pending = deque(backlog)
        self._lag = lag
        self._wake: asyncio.Future[None] | None = None
        self._closing: Callable[[], object] | None = None
        self.closed = False
        self.silent = False

    def push(self, change: Change) -> None:
        """Deliver a change, unless the stream is closed or silently dead."""
        if self.closed or self.silent:
            return
        if self._limit is not None and len(self._pending) >= self._limit:
            self.close()
            return
        self._pending.append(change)
        self._rouse()

    def close(self) -> None:
        """End the stream; what is pending is lost, as with a broken connection."""
        self.closed = True
        self._pending.clear()
        self._rouse()
        closing, self._closing = self._closing, None
        if closing is not None:
            closing()

    def when_closed(self, action: Callable[[], object]) -> None:
        """Call back once, when the stream ends."""
        self._closing = action

    def _rouse(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def next(self) -> Change | None:
        """The next change, no sooner than the stream's lag after it happened; None at the end."""
        while not self._pending:
            if self.closed:
                return None
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
        change = self._pending.popleft()
        wait = self._lag() - (self._clock.now() - change.at).total_seconds()
        if wait > 0:
            await self._clock.sleep(wait)
        return None if self.closed else change


class History:
    """Recent changes of one kind and the watches that follow them."""

    def __init__(self, clock: Clock, limit: int = HISTORY) -> None:
        self._clock = clock
        self._limit = limit
        self._changes: deque[Change] = deque()
        self._compacted = 0
        self._watches: list[Watch] = []

    def add(self, change: Change) -> None:
        """Keep a change and hand it to every watch."""
        self._changes.append(change)
        if len(self._changes) > self._limit:
            self._compacted = self._changes.popleft().version
        for watch in tuple(self._watches):  # one that is too slow is closed and leaves
            watch.push(change)

    @property
    def compacted(self) -> int:
        """The version before which changes are forgotten."""
        return self._compacted

    def compact(self) -> None:
        """Forget every change so far: older watches cannot be resumed."""
        if self._changes:
            self._compacted = self._changes[-1].version
        self._changes.clear()

    def watch(self, version: int, lag: Callable[[], float] = _no_lag, *, limit: int | None = None) -> Watch:
        """A stream of the changes after a version, each delivered ``lag()`` seconds after it happened.

        Args:
            version: where the client stands.
            lag: asked for each change.
            limit: changes that may wait for the client.

        Raises:
            GoneError: changes after that version have been compacted away.
        """
        if version < self._compacted:
            raise GoneError(f"too old resource version: {version} ({self._compacted})")
        watch = Watch(self._clock, [change for change in self._changes if change.version > version], lag, limit)
        self._watches.append(watch)
        return watch

    def forget(self, watch: Watch) -> None:
        """Stop feeding a stream whose reader has left."""
        watch.close()
        if watch in self._watches:
            self._watches.remove(watch)

    def bookmark(self, version: int) -> None:
        """Tell every watch how far the server has come."""
        for watch in tuple(self._watches):
            watch.push(Change("BOOKMARK", None, version, self._clock.now()))

    def drop_watches(self) -> None:
        """Break every connection."""
        for watch in tuple(self._watches):
            watch.close()
        self._watches.clear()

    def silence_watches(self) -> None:
        """Keep every connection open and send nothing more through it."""
        for watch in self._watches:
            watch.silent = True
