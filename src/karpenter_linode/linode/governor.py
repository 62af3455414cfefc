"""Spends API calls like money: stays below the rate limits of a token and shares a pause among all callers.

Limits: spec/linode-provider.md 7.6; five creates in 15 seconds is what accounts really meet (spec/user-cases.md U92).
"""

from __future__ import annotations

import asyncio
from collections import deque
from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from karpenter_linode.ports import Clock


_ARRIVAL_JITTER: Final = 1
"""Seconds by which calls may move closer together on their way; the API counts when they arrive."""


class CallKind(Enum):
    """Calls that share a limit."""

    LIST = "list"
    CREATE = "create"
    OTHER = "other"


class Limit(Struct, frozen=True):
    """At most ``calls`` in any window of ``seconds``."""

    calls: int
    seconds: float


class Limits(Struct, frozen=True):
    """The limits of a token."""

    list: Limit = Limit(200, 60)
    create: Limit = Limit(5, 15)
    other: Limit = Limit(1600, 60)


DEFAULT_LIMITS: Final = Limits()


class RateGovernor:
    """Lets calls through in order of arrival, each kind on its own."""

    def __init__(self, clock: Clock, limits: Limits = DEFAULT_LIMITS) -> None:
        self._clock = clock
        self._limits = {
            CallKind.LIST: limits.list,
            CallKind.CREATE: limits.create,
            CallKind.OTHER: limits.other,
        }
        self._sent: dict[CallKind, deque[datetime]] = {kind: deque() for kind in CallKind}
        self._resume: dict[CallKind, datetime] = {}
        self._turn = {kind: asyncio.Lock() for kind in CallKind}

    async def admit(self, kind: CallKind) -> None:
        """Wait until a call of this kind may be sent, and count it."""
        async with self._turn[kind]:
            while (wait := self._wait_seconds(kind)) > 0:
                await self._clock.sleep(wait)
            self._sent[kind].append(self._clock.now())

    def pause(self, kind: CallKind, seconds: float) -> None:
        """Hold back every call of this kind, as the API demanded of one of them."""
        until = self._clock.now() + timedelta(seconds=seconds)
        self._resume[kind] = max(until, self._resume.get(kind, until))

    def _wait_seconds(self, kind: CallKind) -> float:
        now, limit, sent = self._clock.now(), self._limits[kind], self._sent[kind]
        window = timedelta(seconds=limit.seconds + _ARRIVAL_JITTER)
        while sent and sent[0] + window <= now:
            sent.popleft()
        free_at = sent[-limit.calls] + window if len(sent) >= limit.calls else now
        return (max(free_at, self._resume.get(kind, now)) - now).total_seconds()
