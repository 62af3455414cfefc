"""Kubernetes Events about objects: repetitions are dropped, floods are cut off, an equal event raises a count."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from karpenter_linode.kube.bucket import TokenBucket
from karpenter_linode.kube.http import KubeCall
from karpenter_linode.model.repetitions import Repetitions
from karpenter_linode.ports import KubeError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable

    from karpenter_linode.kube.http import KubeHttp
    from karpenter_linode.model.meta import KubeObject
    from karpenter_linode.ports import Logger

EventType = Literal["Normal", "Warning"]
COMPONENT: Final = "karpenter"
_QUEUE: Final = 1000
_REMEMBERED: Final = 4096
_DRAIN_SECONDS: Final = 2.0
_NOMINATED: Final = "Nominated"
_LONGEST_MESSAGE: Final = 1024
_LONGEST_NAME: Final = 230


class _Record(Struct, frozen=True):
    """An event to write."""

    key: tuple[str, str, str, str]
    namespace: str
    body: dict[str, Any]


class KubeEvents:
    """``ports.EventSink`` that writes into the cluster, from one task, in order.

    An event is dropped when one with equal reason and dedupe values was told within the window, when more than 5 a
    second (burst 10) are ``Nominated``, when one object gets more than 25 at once (then one in 5 minutes), or when the
    API server is too slow to take them.

    Args:
        http: the connection.
        logger: told of events that cannot be written.
        monotonic: seconds that only go forward.
    """

    def __init__(self, http: KubeHttp, logger: Logger, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._http, self._logger, self._monotonic = http, logger, monotonic
        self._queue: asyncio.Queue[_Record] = asyncio.Queue(_QUEUE)
        self._said = Repetitions()
        self._written: OrderedDict[tuple[str, str, str, str], tuple[str, int]] = OrderedDict()
        self._spam: OrderedDict[str, TokenBucket] = OrderedDict()
        self._nominations = TokenBucket(5, 10)
        self.dropped = 0

    def publish(
        self,
        obj: KubeObject,
        event_type: EventType,
        reason: str,
        message: str,
        *,
        dedupe: tuple[str, ...] = (),
        dedupe_seconds: int = 120,
    ) -> None:
        """Report something, without waiting."""
        now = self._monotonic()
        if not self._said.is_new(obj, reason, message, dedupe=dedupe, window=dedupe_seconds, now=now):
            return
        about = obj.uid or f"{obj.KIND}/{obj.key}"
        spam = self._spam.get(about) or TokenBucket(1 / 300, 25)
        _remember(self._spam, about, spam)
        if not spam.take(now) or (reason == _NOMINATED and not self._nominations.take(now)):
            self.dropped += 1
            return
        record = _Record(
            (about, event_type, reason, message), obj.namespace or "default", _body(obj, event_type, reason, message)
        )
        try:
            self._queue.put_nowait(record)
        except asyncio.QueueFull:
            self.dropped += 1

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            record = await self._queue.get()
            try:
                await self._write(record)
            except KubeError as error:
                self.dropped += 1
                self._logger.debug("cannot write an event", reason=record.body["reason"], error=str(error))

    async def drain(self) -> None:
        """Write what is left, for a short time only."""
        try:
            async with asyncio.timeout(_DRAIN_SECONDS):
                while not self._queue.empty():
                    await self._write(self._queue.get_nowait())
        except (TimeoutError, KubeError):
            return

    async def _write(self, record: _Record) -> None:
        name, count = self._written.get(record.key, ("", 0))
        if count:
            change = {"count": count + 1, "lastTimestamp": record.body["lastTimestamp"]}
            call = KubeCall(
                "patch",
                "v1",
                "events",
                record.namespace,
                name,
                body=change,
                content_type="application/merge-patch+json",
            )
            try:
                await self._http.send(call)
            except NotFoundError:  # events live for an hour
                count = 0
        if not count:
            name = record.body["metadata"]["name"]
            await self._http.send(KubeCall("create", "v1", "events", record.namespace, body=record.body))
        _remember(self._written, record.key, (name, count + 1))


def _remember(memory: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > _REMEMBERED:
        memory.popitem(last=False)


def _body(obj: KubeObject, event_type: str, reason: str, message: str) -> dict[str, Any]:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{obj.name[:_LONGEST_NAME]}.{time.time_ns():x}",
            "namespace": obj.namespace or "default",
        },
        "involvedObject": {
            "apiVersion": obj.API_VERSION,
            "kind": obj.KIND,
            "namespace": obj.namespace,
            "name": obj.name,
            "uid": obj.uid,
            "resourceVersion": obj.metadata.resource_version,
        },
        "type": event_type,
        "reason": reason,
        "message": message[:_LONGEST_MESSAGE],
        "count": 1,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": {"component": COMPONENT},
    }
