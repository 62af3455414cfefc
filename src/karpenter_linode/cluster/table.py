"""One kind of mirrored objects: by key, and by what is looked up often."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from karpenter_linode.model.meta import KubeObject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from karpenter_linode.model.meta import ObjectMeta

    Index = Callable[[KubeObject], Iterable[str]]

T = TypeVar("T", bound=KubeObject)


def written_after(meta: ObjectMeta, version: str) -> bool:
    """Whether an object was written after a list was taken; versions that are no numbers never say so."""
    written = meta.resource_version
    return written.isdigit() and version.isdigit() and int(written) > int(version)


def is_newer(meta: ObjectMeta, than: ObjectMeta) -> bool:
    """Whether one state of an object follows another; versions that are no numbers only tell equal from different."""
    new, old = meta.resource_version, than.resource_version
    return int(new) > int(old) if new.isdigit() and old.isdigit() else not new or new != old


class Table(Generic[T]):
    """Objects of one kind. Iteration is ordered by key, whatever the order of arrival.

    Args:
        indexes: for each index, the values under which an object is found. The value "" is never indexed, so that a
            look-up by an empty node name or provider id finds nothing.
    """

    def __init__(self, indexes: Mapping[str, Index] | None = None) -> None:
        self._indexes = dict(indexes or {})
        self._objects: dict[str, T] = {}
        self._buckets: dict[str, dict[str, dict[str, T]]] | None = {name: {} for name in self._indexes}
        self._sorted: tuple[T, ...] | None = ()
        self._shared = False

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, key: str) -> T | None:
        """The object of that key (``namespace/name`` or name), or None."""
        return self._objects.get(key)

    def all(self) -> tuple[T, ...]:
        """Every object, ordered by key."""
        if self._sorted is None:
            self._sorted = tuple(self._objects[key] for key in sorted(self._objects))
        return self._sorted

    def by(self, index: str, value: str) -> tuple[T, ...]:
        """Objects with that value of an index, ordered by key."""
        bucket = self._index()[index].get(value)
        return tuple(bucket[key] for key in sorted(bucket)) if bucket else ()

    def put(self, obj: T) -> T | None:
        """Add or replace an object; returns what stood there."""
        self._own()
        old = self._objects.get(obj.key)
        self._objects[obj.key] = obj
        self._sorted = None
        self._unindex(old)
        for name, values in self._indexes.items():
            for value in filter(None, values(obj)):
                self._index()[name].setdefault(value, {})[obj.key] = obj
        return old

    def remove(self, key: str) -> T | None:
        """Take an object out; returns it."""
        self._own()
        old = self._objects.pop(key, None)
        self._sorted = None
        self._unindex(old)
        return old

    def freeze(self) -> Table[T]:
        """A copy that later changes don't reach; objects are shared until then, indexes are made on demand."""
        frozen: Table[T] = Table()
        frozen._indexes, frozen._objects, frozen._buckets = self._indexes, self._objects, None
        frozen._sorted = self.all()
        self._shared = True
        return frozen

    def _own(self) -> None:
        if self._shared:
            self._objects = dict(self._objects)
            self._shared = False

    def _index(self) -> dict[str, dict[str, dict[str, T]]]:
        if self._buckets is None:
            buckets: dict[str, dict[str, dict[str, T]]] = {name: {} for name in self._indexes}
            for key, obj in self._objects.items():
                for name, values in self._indexes.items():
                    for value in filter(None, values(obj)):
                        buckets[name].setdefault(value, {})[key] = obj
            self._buckets = buckets
        return self._buckets

    def _unindex(self, obj: T | None) -> None:
        if obj is None:
            return
        for name, values in self._indexes.items():
            for value in filter(None, values(obj)):
                bucket = self._index()[name].get(value, {})
                if bucket.get(obj.key) is obj:
                    del bucket[obj.key]
                if not bucket:
                    self._index()[name].pop(value, None)
