"""Watches that survive: streams that end, break off or fall silent are opened again where they stopped."""

from __future__ import annotations

import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import Struct

from karpenter_linode.kube.decoding import decode_event
from karpenter_linode.kube.errors import UnreachableError, UnreadableError
from karpenter_linode.kube.http import KubeCall
from karpenter_linode.model.meta import KubeObject
from karpenter_linode.ports import KubeError, TooManyRequestsError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from karpenter_linode.kube.http import KubeHttp
    from karpenter_linode.ports import Clock, Logger, Random, WatchEvent

T = TypeVar("T", bound=KubeObject)
_SERVER: Final = 500
_MAX_DOUBLINGS: Final = 10
_TOLD_AFTER: Final = 5
"""Failures in a row that an operator hears of; one now and then is the way of watches."""


class WatchOptions(Struct, frozen=True):
    """Time limits of watches, in seconds.

    Args:
        silence: without an event or a bookmark for so long a stream counts as dead. Servers send a bookmark each
            minute. Shorter than the time after which a mirror gives up the whole watch.
        shortest, longest: between these the server is asked to end each stream, so that load spreads over servers.
        pause: before a stream is opened again, doubled with each failure in a row.
        longest_pause: of those.
    """

    silence: float = 90.0
    shortest: float = 300.0
    longest: float = 600.0
    pause: float = 0.8
    longest_pause: float = 30.0


class Watching:
    """Opens watches, and knows how fresh each is.

    Args:
        http: the connection.
        clock: pauses.
        random: jitter.
        logger: told of streams that break off and of objects that cannot be read.
        options: time limits.
    """

    def __init__(
        self, http: KubeHttp, clock: Clock, random: Random, logger: Logger, options: WatchOptions | None = None
    ) -> None:
        self._http, self._clock, self._random, self._logger = http, clock, random, logger
        self._options = options or WatchOptions()
        self._heard: dict[str, float] = {}
        self.reconnects = 0
        self.unreadable_objects = 0

    def staleness(self) -> dict[str, float]:
        """Seconds since each open watch last heard of its server, by plural."""
        now = time.monotonic()
        return {plural: now - heard for plural, heard in sorted(self._heard.items())}

    def unreadable(self, kind: type[KubeObject], key: str, problem: str) -> None:
        """Report an object that is left out because it cannot be read."""
        self.unreadable_objects += 1
        self._logger.error("ignoring an object that cannot be read", kind=kind.KIND, name=key, error=problem)

    async def watch(self, kind: type[T], version: str) -> AsyncGenerator[WatchEvent[T], None]:
        """Changes after a version, until cancelled.

        Raises:
            GoneError: the version is too old.
            KubeError: the server refuses for a reason that waiting does not mend.
        """
        failures, silence = 0, self._options.silence
        self._heard[kind.PLURAL] = time.monotonic()
        try:
            while True:
                opened = time.monotonic()
                try:
                    async with aclosing(self._http.lines(call := self._call(kind, version), silence)) as batches:
                        name = str(call)
                        async for batch in batches:
                            self._heard[kind.PLURAL] = time.monotonic()
                            for line in batch:
                                event = decode_event(line, kind, name, self.unreadable)
                                version = event.resource_version or version
                                failures = 0
                                yield event
                    if time.monotonic() - opened < 1:  # a server that ends streams at once is not hammered
                        failures += 1
                        await self._clock.sleep(self._pause(failures))
                except (UnreachableError, UnreadableError, TooManyRequestsError) as error:
                    failures += 1
                    await self._wait(kind, failures, error)
                except KubeError as error:
                    if error.status < _SERVER:
                        raise
                    failures += 1
                    await self._wait(kind, failures, error)
        finally:
            self._heard.pop(kind.PLURAL, None)

    async def _wait(self, kind: type[KubeObject], failures: int, error: KubeError) -> None:
        self.reconnects += 1
        delay = self._pause(failures)
        tell = self._logger.warning if failures >= _TOLD_AFTER else self._logger.debug
        tell("opening a watch again", kind=kind.KIND, error=str(error), delay=f"{delay:.1f}s")
        await self._clock.sleep(delay)

    def _pause(self, failures: int) -> float:
        longest = min(self._options.longest_pause, self._options.pause * (1 << min(failures - 1, _MAX_DOUBLINGS)))
        return self._random.uniform(longest / 2, longest)

    def _call(self, kind: type[KubeObject], version: str) -> KubeCall:
        seconds = self._random.uniform(self._options.shortest, self._options.longest)
        params = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(int(seconds)),
        }
        return KubeCall("watch", kind.API_VERSION, kind.PLURAL, params=params)
