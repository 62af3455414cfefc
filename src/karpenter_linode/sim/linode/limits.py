"""Rate limits of a token (spec/linode-provider.md 7.6); the emulator has none unless it is given some."""

from __future__ import annotations

import math
from collections import deque
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from karpenter_linode.sim.linode.records import ApiFaultError

if TYPE_CHECKING:
    from karpenter_linode.ports import Clock


class Bucket(Struct, frozen=True):
    """At most ``calls`` in any window of ``seconds``."""

    calls: int
    seconds: float


class RateLimits(Struct, frozen=True):
    """The documented limits."""

    list: Bucket = Bucket(200, 60)
    create: Bucket = Bucket(20, 15)
    other: Bucket = Bucket(1600, 60)


DOCUMENTED: Final = RateLimits()


class RateLimiter:
    """Counts calls and refuses those beyond the limit with 429."""

    def __init__(self, clock: Clock, limits: RateLimits) -> None:
        self._clock, self._limits = clock, limits
        self._sent: dict[str, deque[datetime]] = {}

    def admit(self, kind: str) -> dict[str, str]:
        """Count a call and return the headers for its answer; kinds are ``list``, ``create`` and ``other``.

        Raises:
            ApiFaultError: 429 with ``Retry-After``.
        """
        bucket: Bucket = getattr(self._limits, kind)
        sent, now = self._sent.setdefault(kind, deque()), self._clock.now()
        window = timedelta(seconds=bucket.seconds)
        while sent and sent[0] + window <= now:
            sent.popleft()
        headers = {"X-RateLimit-Limit": str(bucket.calls)}
        if len(sent) >= bucket.calls:
            wait = math.ceil((sent[0] + window - now).total_seconds())
            headers |= {"X-RateLimit-Remaining": "0", "Retry-After": str(max(1, wait))}
            raise ApiFaultError(429, "Too many requests", headers=headers)
        sent.append(now)
        reset = int((sent[0] + window).timestamp())
        return headers | {"X-RateLimit-Remaining": str(bucket.calls - len(sent)), "X-RateLimit-Reset": str(reset)}
