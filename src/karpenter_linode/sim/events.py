"""Kubernetes Events in the store, told in the journal as well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from karpenter_linode.model.core import Event
from karpenter_linode.model.repetitions import Repetitions
from karpenter_linode.model.timestamps import rfc3339
from karpenter_linode.ports import AlreadyExistsError, NotFoundError
from karpenter_linode.sim.journal import subject_of
from karpenter_linode.sim.resource_types import type_of

if TYPE_CHECKING:
    from karpenter_linode.model.meta import KubeObject
    from karpenter_linode.ports import Clock
    from karpenter_linode.sim.journal import Journal
    from karpenter_linode.sim.seeded import SeededRandom
    from karpenter_linode.sim.store import Store

EventType = Literal["Normal", "Warning"]
_NAME_DIGITS: Final = 16


class EventRecorder:
    """Writes events as client-go's recorder does: an equal event raises the count of the one that exists.

    Args:
        store: where events are kept.
        clock: dates them.
        journal: tells them.
        random: draws names.
        component: who reports.
        keep: how many events are known again when they are repeated, the latest; None for all.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        journal: Journal,
        random: SeededRandom,
        component: str,
        keep: int | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._journal = journal
        self._random = random.child(f"events/{component}")
        self._component = component
        self._names: dict[tuple[str, str, str], tuple[str, int]] = {}
        self.keep = keep

    def record(self, obj: KubeObject, event_type: EventType, reason: str, message: str) -> None:
        """Report something about an object. Repetitions are counted, and told in the journal once."""
        now = rfc3339(self._clock.now())
        key = (obj.uid or obj.key, reason, message)
        name, count = self._names.get(key, ("", 0))
        if count and self._count_up(name, obj.namespace or "default", count + 1, now):
            self._names[key] = (name, count + 1)
            return
        self._journal.add(
            self._component, "event", subject_of(obj), message, level=event_type, fields={"reason": reason}
        )
        self._names[key] = (self._create(obj, event_type, reason, message, now), 1)
        forget_oldest(self._names, self.keep)

    def _create(self, obj: KubeObject, event_type: EventType, reason: str, message: str, now: str) -> str:
        while True:
            name = f"{obj.name}.{self._random.hexadecimal(_NAME_DIGITS)}"
            try:
                self._store.create(self._event(obj, name, event_type, reason, message, now))
            except AlreadyExistsError:
                continue  # a process that started anew draws the names of its predecessor again
            except NotFoundError:
                pass  # the namespace has gone with the object; the journal still has the event
            return name

    def _count_up(self, name: str, namespace: str, count: int, now: str) -> bool:
        try:
            self._store.patch(type_of(Event), name, {"count": count, "lastTimestamp": now}, namespace=namespace)
        except NotFoundError:
            return False
        return True

    def _event(  # the columns of an event
        self, obj: KubeObject, name: str, event_type: str, reason: str, message: str, now: str
    ) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": obj.namespace or "default"},
            "involvedObject": {
                "apiVersion": obj.API_VERSION,
                "kind": obj.KIND,
                "namespace": obj.namespace,
                "name": obj.name,
                "uid": obj.uid,
            },
            "type": event_type,
            "reason": reason,
            "message": message,
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": self._component},
        }


def forget_oldest(kept: dict[Any, Any], limit: int | None) -> None:
    """Drop what was put in first, as long as there is more than the limit."""
    while limit is not None and len(kept) > limit:
        del kept[next(iter(kept))]


class JournalEvents:
    """``ports.EventSink``: drops what was said before, and records the rest.

    Args:
        recorder: where events go.
        clock: measures how long ago something was said.
    """

    def __init__(self, recorder: EventRecorder, clock: Clock) -> None:
        self._recorder = recorder
        self._clock = clock
        self._said = Repetitions(recorder.keep)

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
        """Report, unless an event with equal reason and dedupe values was reported within ``dedupe_seconds``."""
        now = self._clock.now().timestamp()
        if self._said.is_new(obj, reason, message, dedupe=dedupe, window=dedupe_seconds, now=now):
            self._recorder.record(obj, event_type, reason, message)
