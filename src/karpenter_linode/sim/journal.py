"""The kept story of a run: who did what to which object, and when."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct, field

from karpenter_linode.model import codec
from karpenter_linode.model.meta import KubeObject

if TYPE_CHECKING:
    from collections.abc import Callable

    from karpenter_linode.ports import Clock

EntryKind = Literal["log", "event", "step", "fault"]

SUBJECT_FIELDS: Final = ("Pod", "NodeClaim", "Node", "NodePool", "LinodeNodeClass", "ResourceClaim", "ResourceSlice")
"""Log fields that name the object a line is about, most telling first."""


class Entry(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A line of the story.

    Args:
        at: when.
        component: who (``karpenter``, ``kube-scheduler``, ``kubelet``, ``linode``, ...).
        kind: a log line, a Kubernetes event, a step of the world, or a fault that was played.
        subject: ``Kind namespace/name`` of the object, where there is one.
        message: what happened.
        level: of log lines (debug, info, warning, error) and events (Normal, Warning).
        fields: further values, as text or plain data.
    """

    at: datetime
    component: str
    kind: EntryKind
    subject: str
    message: str
    level: str = ""
    fields: dict[str, Any] = field(default_factory=dict)

    def mentions(self, name: str) -> bool:
        """Whether the entry is about that name, or names it in its message or fields, as a whole word."""
        pattern = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])")
        return any(pattern.search(text) for text in (self.subject, self.message, *_texts(self.fields)))


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for item in value.values() for text in _texts(item)]
    if isinstance(value, list | tuple):
        return [text for item in value for text in _texts(item)]
    return [str(value)]


class Journal:
    """Entries in the order in which they happened.

    Args:
        clock: dates them.
        start: time zero of offsets.
        keep: how many entries are kept at least, the latest; None for all.
    """

    def __init__(self, clock: Clock, start: datetime, keep: int | None = None) -> None:
        self._clock = clock
        self._listeners: list[Callable[[Entry], None]] = []
        self.start = start
        self.entries: list[Entry] = []
        self._keep = keep

    def listen(self, listener: Callable[[Entry], None]) -> None:
        """Call back at once on every entry."""
        self._listeners.append(listener)

    def add(  # an entry's columns
        self,
        component: str,
        kind: EntryKind,
        subject: str,
        message: str,
        *,
        level: str = "",
        fields: dict[str, Any] | None = None,
    ) -> None:
        """Write an entry, dated now."""
        entry = Entry(self._clock.now(), component, kind, subject, message, level, codec.to_plain(fields or {}))
        self.entries.append(entry)
        if self._keep is not None and len(self.entries) > 2 * self._keep:
            del self.entries[: self._keep]
        for listener in self._listeners:
            listener(entry)

    def step(self, component: str, subject: KubeObject | str, message: str, **fields: Any) -> None:
        """Write what a part of the world did to an object."""
        self.add(component, "step", subject_of(subject), message, fields=fields)

    def offset(self, entry: Entry) -> timedelta:
        """Time from the start to an entry."""
        return entry.at - self.start

    def story(self, name: str) -> list[Entry]:
        """The entries that tell of an object: by name, or by ``namespace/name``."""
        return [entry for entry in self.entries if entry.mentions(name)]

    def to_json_lines(self) -> bytes:
        """All entries, one JSON object a line; equal runs give equal bytes."""
        return b"".join(codec.encode(entry) + b"\n" for entry in self.entries)


def subject_of(subject: KubeObject | str) -> str:
    """``Kind namespace/name`` of an object."""
    return f"{subject.KIND} {subject.key}" if isinstance(subject, KubeObject) else subject


class JournalLogger:
    """``ports.Logger`` that writes into the journal.

    Args:
        journal: where to.
        component: whose log it is.
        debug: whether debug lines are kept.
        bound: fields of every line.
    """

    def __init__(
        self, journal: Journal, component: str = "karpenter", *, debug: bool = True, bound: dict[str, Any] | None = None
    ) -> None:
        self._journal = journal
        self._component = component
        self._debug = debug
        self._bound = bound or {}

    def bind(self, **fields: Any) -> JournalLogger:
        """A logger whose lines carry these fields too."""
        return JournalLogger(self._journal, self._component, debug=self._debug, bound={**self._bound, **fields})

    def debug(self, event: str, **fields: Any) -> None:
        """A debug line (upstream's V(1))."""
        if self._debug:
            self._line("debug", event, fields)

    def info(self, event: str, **fields: Any) -> None:
        """An info line."""
        self._line("info", event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        """A warning line."""
        self._line("warning", event, fields)

    def error(self, event: str, **fields: Any) -> None:
        """An error line."""
        self._line("error", event, fields)

    def _line(self, level: str, event: str, fields: dict[str, Any]) -> None:
        # A traceback names files and lines of this machine: equal runs must give equal bytes.
        told = {name: value for name, value in {**self._bound, **fields}.items() if name != "exc_info"}
        plain = {name: _loggable(value) for name, value in told.items()}
        subject = next((f"{name} {plain[name]}" for name in SUBJECT_FIELDS if isinstance(plain.get(name), str)), "")
        self._journal.add(self._component, "log", subject, event, level=level, fields=plain)


def _loggable(value: Any) -> Any:
    """A log field as plain data: objects by their key, errors by their text."""
    if isinstance(value, KubeObject):
        return value.key
    if isinstance(value, BaseException):
        return str(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    return value
