"""Watches over HTTP: what was there, what changes, and bookmarks, one JSON document a line."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from karpenter_linode.model import codec
from karpenter_linode.ports import GoneError
from karpenter_linode.sim.face.errors import RequestError, bad_request, status_of
from karpenter_linode.sim.face.reads import Format, check_version, selected, shaped, wanted_format
from karpenter_linode.sim.face.selectors import predicate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from karpenter_linode.ports import Clock
    from karpenter_linode.sim.face.requests import ApiRequest
    from karpenter_linode.sim.store import Store
    from karpenter_linode.sim.stored import Stored
    from karpenter_linode.sim.watches import Change, Watch

Plain = dict[str, Any]

MAX_WATCHES: Final = 256
"""Streams that may be open at a time."""
MAX_WAITING: Final = 5_000
"""Changes that may wait for a slow client."""
INITIAL_END: Final = "k8s.io/initial-events-end"
_LONGEST: Final = 3600


class Streams:
    """The open watches.

    Args:
        store: what is watched.
        clock: the world's time.
        speed: the world's seconds in one of the client's.
    """

    def __init__(self, store: Store, clock: Clock, speed: float = 1.0) -> None:
        self._store, self._clock, self._speed = store, clock, speed
        self._open: set[Watch] = set()

    def close(self) -> None:
        """End all streams."""
        for watch in tuple(self._open):
            watch.close()

    def watch(self, request: ApiRequest) -> tuple[str, AsyncIterator[bytes]]:
        """Open a stream.

        Returns:
            The content type and the lines.

        Raises:
            RequestError: parameters that make no sense (400), too many streams (429), a version to come (504).
        """
        form = wanted_format(request)
        if form.shape == "PartialObjectMetadataList":
            form = Format("PartialObjectMetadata")
        initial, version = self._start(request)
        matches = predicate(request)
        if len(self._open) >= MAX_WATCHES:
            raise RequestError(429, f"{len(self._open)} watches are open, and no more may be: end some of them")
        watched = self._store.history(request.target.type)
        try:
            watch = watched.watch(version, limit=MAX_WAITING)
        except GoneError as error:
            return _content_type(form), _refused(error)
        self._open.add(watch)
        seconds = min(request.number("timeoutSeconds") or _LONGEST, _LONGEST) * self._speed
        timer = asyncio.get_running_loop().call_later(seconds, watch.close)

        def leave() -> None:
            timer.cancel()
            self._open.discard(watch)
            watched.forget(watch)

        watch.when_closed(leave)
        return _content_type(form), self._lines(request, form, watch, initial, matches)

    def _start(self, request: ApiRequest) -> tuple[tuple[Stored, ...], int]:
        """The objects to tell first, and the version after which changes are told."""
        check_version(self._store, request)
        asked, latest = request.number("resourceVersion"), int(self._store.resource_version)
        send = request.query.get("sendInitialEvents", "")
        if send and request.query.get("resourceVersionMatch") != "NotOlderThan":
            raise bad_request(
                "sendInitialEvents: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            )
        if request.flag("sendInitialEvents") or (not send and not asked):
            return selected(self._store, request), latest
        return (), asked or latest

    async def _lines(
        self,
        request: ApiRequest,
        form: Format,
        watch: Watch,
        initial: tuple[Stored, ...],
        matches: Callable[[Stored | None], bool],
    ) -> AsyncIterator[bytes]:
        kind, bookmarks = request.target.type, request.flag("allowWatchBookmarks")
        version = self._store.resource_version

        def line(event: str, stored: Stored) -> bytes:
            return codec.encode({"type": event, "object": shaped(kind, stored, form, self._clock.now())}) + b"\n"

        try:
            for stored in initial:
                yield line("ADDED", stored)
            if bookmarks and request.flag("sendInitialEvents"):
                yield _bookmark(request, version, {INITIAL_END: "true"})
            while (change := await watch.next()) is not None:
                if change.stored is None:
                    if bookmarks:
                        yield _bookmark(request, str(change.version), {})
                    continue
                event = _event(change, matches)
                if event:
                    yield line(event, change.stored)
        finally:
            watch.close()


def _event(change: Change, matches: Callable[[Stored | None], bool]) -> str:
    """The event that a client with selectors sees: objects come into view and leave it."""
    now = change.type != "DELETED" and matches(change.stored)
    before = matches(change.before)
    if now:
        return "MODIFIED" if before else "ADDED"
    return "DELETED" if before else ""


def _bookmark(request: ApiRequest, version: str, annotations: dict[str, str]) -> bytes:
    metadata: Plain = {"resourceVersion": version, "creationTimestamp": None}
    if annotations:
        metadata["annotations"] = annotations
    kind = request.target.type
    obj = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
    return codec.encode({"type": "BOOKMARK", "object": obj}) + b"\n"


def _content_type(form: Format) -> str:
    return f"{form.content_type};stream=watch" if form.shape else "application/json"


async def _refused(error: GoneError) -> AsyncIterator[bytes]:
    """A stream that tells one error: clients list again."""
    yield codec.encode({"type": "ERROR", "object": status_of(error)}) + b"\n"
