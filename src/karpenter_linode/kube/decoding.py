"""From bytes to our Structs in one step; lightkube's models, which hold every field of the API, are never built."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import msgspec
from msgspec import Struct, field

from karpenter_linode.kube.errors import UnreadableError, error_from, status_of
from karpenter_linode.kube.shallow import shallow
from karpenter_linode.model import codec
from karpenter_linode.model.meta import KubeObject
from karpenter_linode.ports import WatchEvent

if TYPE_CHECKING:
    from collections.abc import Callable

    Unreadable = Callable[[type[KubeObject], str, str], None]

T = TypeVar("T", bound=KubeObject)
EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]


class ListMeta(Struct, frozen=True, rename="camel"):
    """Where a list stands."""

    resource_version: str = ""
    continue_: str = field(name="continue", default="")


class Page(Struct, Generic[T], frozen=True):
    """One page of a list."""

    metadata: ListMeta
    items: tuple[T, ...] | None = None


class _Event(Struct, Generic[T], frozen=True):
    type: EventType
    object: T


class _RawPage(Struct, frozen=True):
    metadata: ListMeta
    items: tuple[msgspec.Raw, ...] | None = None


class _RawEvent(Struct, frozen=True):
    type: str
    object: msgspec.Raw


class _Named(Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _AnyObject(Struct, frozen=True):
    metadata: _Named = field(default_factory=_Named)


def decode_object(content: bytes, kind: type[T], call: str) -> T:
    """One object. Raises UnreadableError."""
    try:
        return _object(content, kind)
    except codec.DecodeError as error:
        raise UnreadableError(f"{call}: {kind.KIND}: {error}") from None


def decode_page(content: bytes, kind: type[T], call: str, unreadable: Unreadable) -> Page[T]:
    """A page of a list. An object that cannot be read is reported and left out: one must not hide all others.

    Raises:
        UnreadableError: this is no list.
    """
    try:
        page: Page[T] = codec.decode(content, Page[kind])  # type: ignore[valid-type]  # made generic at run time
    except codec.DecodeError:
        pass
    else:
        return page
    try:
        raw = msgspec.json.decode(shallow(content), type=_RawPage)
    except msgspec.MsgspecError as error:
        raise UnreadableError(f"{call}: {error}") from None
    items = (_or_none(bytes(item), kind, unreadable) for item in raw.items or ())
    return Page(raw.metadata, tuple(item for item in items if item is not None))


def decode_event(line: bytes, kind: type[T], call: str, unreadable: Unreadable) -> WatchEvent[T]:
    """A watch event. An object that cannot be read is reported; what is left of its event is the version.

    Raises:
        KubeError: the stream says that it failed; GoneError where it starts too far back.
        UnreadableError: this is no event.
    """
    try:
        event: _Event[T] = codec.decode(line, _event_of(kind))
    except codec.DecodeError:
        return _odd_event(shallow(line), kind, call, unreadable)
    obj = event.object
    return WatchEvent(event.type, None if event.type == "BOOKMARK" else obj, obj.metadata.resource_version)


@cache
def _event_of(kind: type[T]) -> type[_Event[T]]:
    """The event type of a kind; making it anew for each event would cost more than a small event's decoding."""
    return _Event[kind]  # type: ignore[valid-type]  # made generic at run time


def _odd_event(line: bytes, kind: type[T], call: str, unreadable: Unreadable) -> WatchEvent[T]:
    try:
        event = msgspec.json.decode(line, type=_RawEvent)
        content = bytes(event.object)
        if event.type == "ERROR":
            status = status_of(content)
            raise error_from(call, status.code or 500, status)
        meta = msgspec.json.decode(content, type=_AnyObject).metadata
    except msgspec.MsgspecError as error:
        raise UnreadableError(f"{call}: {error}") from None
    obj = None if event.type == "BOOKMARK" else _or_none(content, kind, unreadable)
    if obj is None and event.type == "DELETED":
        obj = _nameplate(meta, kind)  # what was known of it, from when it could be read, must not stay for ever
    if obj is None or event.type not in {"ADDED", "MODIFIED", "DELETED"}:
        return WatchEvent("BOOKMARK", None, meta.resource_version)
    return WatchEvent(event.type, obj, meta.resource_version)  # type: ignore[arg-type]  # one of the three, as checked above


def _or_none(content: bytes, kind: type[T], unreadable: Unreadable) -> T | None:
    try:
        return _object(content, kind)
    except codec.DecodeError as error:
        meta = _name_of(content)
        unreadable(kind, f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name, str(error))
        return None


def _nameplate(meta: _Named, kind: type[T]) -> T | None:
    """An object of which no more is known than which one it is; None for a kind that is nothing without the rest."""
    try:
        return codec.convert({"metadata": msgspec.to_builtins(meta)}, kind)
    except codec.DecodeError:
        return None


def _name_of(content: bytes) -> _Named:
    try:
        return msgspec.json.decode(content, type=_AnyObject).metadata
    except msgspec.MsgspecError:
        return _Named(name="(no name)")


def _object(content: bytes, kind: type[T]) -> T:
    """Null members count as absent: Go writes empty lists and maps so in places."""
    try:
        return codec.decode(content, kind)
    except codec.DecodeError as error:
        try:
            plain: Any = msgspec.json.decode(shallow(content))
        except msgspec.MsgspecError:
            raise error from None
        return codec.convert(plain, kind)
