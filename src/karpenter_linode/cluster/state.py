"""``ClusterState``: watch events in, immutable snapshots out (spec/karpenter-lifecycle.md 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from karpenter_linode.cluster.table import is_newer, written_after
from karpenter_linode.cluster.view import View, mirrored_kinds, new_tables
from karpenter_linode.model.karpenter import NodeClaim
from karpenter_linode.model.meta import KubeObject

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

T = TypeVar("T", bound=KubeObject)
_REMEMBERED_DELETIONS: Final = 4096


class ClusterState(View):
    """The mirrored cluster. No authority: all but nominations and marks can be rebuilt from the API.

    Args:
        with_devices: whether resource.k8s.io is mirrored too (DRA on).
        with_spread: whether Services and the controllers of replicated pods are mirrored too.
    """

    def __init__(self, *, with_devices: bool = True, with_spread: bool = False) -> None:
        tables = new_tables()
        super().__init__(tables)
        self.kinds = mirrored_kinds(with_devices=with_devices, with_spread=with_spread)
        self._listed: set[type[KubeObject]] = set()
        self._gone: dict[str, None] = {}
        self._marks: set[str] = set()

    def synced(self) -> bool:
        """Whether every mirrored kind was listed once."""
        return self._listed.issuperset(self.kinds)

    def unsynced_kinds(self) -> tuple[str, ...]:
        """Kinds that were never listed."""
        return tuple(kind.PLURAL for kind in self.kinds if kind not in self._listed)

    def observe(self, obj: KubeObject) -> KubeObject | None:
        """Take in an object that was added or changed.

        Returns:
            What stood there before, or the object itself where it is old news (an older version, or deleted since).
        """
        table = self.table(type(obj))
        old = table.get(obj.key)
        if obj.uid and obj.uid in self._gone:
            return obj
        if old is not None and old.uid == obj.uid and not is_newer(obj.metadata, old.metadata):
            return obj
        table.put(obj)
        return old

    def forget(self, obj: KubeObject) -> KubeObject | None:
        """Take out an object that was deleted; returns what stood there. A later object of that name stays."""
        self._remember_gone(obj.uid)
        table = self.table(type(obj))
        old = table.get(obj.key)
        if old is None or (obj.uid and old.uid != obj.uid):
            return None
        for ident in (f"nodeclaim/{obj.name}",) if isinstance(obj, NodeClaim) else ():
            self.unmark_for_deletion(ident)
            self._nominated.pop(ident, None)
        return table.remove(obj.key)

    def relist(self, kind: type[T], items: Iterable[T], version: str) -> tuple[list[T], list[T]]:
        """Replace what is known of a kind by a consistent list.

        Args:
            kind: the kind.
            items: every object there is.
            version: the list's resource version; objects written after it (own writes) stay.

        Returns:
            Objects that are new or changed, and objects that are gone.
        """
        listed = {item.key: item for item in items}
        stale = [obj for obj in self.all(kind) if obj.key not in listed and not written_after(obj.metadata, version)]
        for obj in stale:
            self.forget(obj)
        changed = [item for _, item in sorted(listed.items()) if self.observe(item) is not item]
        self._listed.add(kind)
        return changed, stale

    def nominate(self, state_node_id: str, until: datetime) -> None:
        """Expect pods on a state node; a later end extends the window, an earlier one changes nothing."""
        present = self._nominated.get(state_node_id)
        if present is None or present < until:
            self._nominated[state_node_id] = until

    def send(self, nominations: Mapping[str, str]) -> None:
        """Remember where pods are to go, by UID: to a NodeClaim or else to a Node, by name."""
        self.nominations.update(nominations)

    def recall(self) -> Mapping[str, str]:
        """Forget where pods were to go; returns it."""
        before, self.nominations = self.nominations, {}
        return before

    def mark_for_deletion(self, *state_node_ids: str) -> None:
        """A disruption command is removing these: they give no room any more."""
        self._marks.update(state_node_ids)
        self._marked = frozenset(self._marks)

    def unmark_for_deletion(self, *state_node_ids: str) -> None:
        """The command was given up."""
        self._marks.difference_update(state_node_ids)
        self._marked = frozenset(self._marks)

    def snapshot(self) -> View:
        """An immutable view of this moment."""
        tables: dict[type[KubeObject], Any] = {kind: table.freeze() for kind, table in self._tables.items()}
        return View(tables, self._marked, self._nominated, self.nominations)

    def _remember_gone(self, uid: str) -> None:
        if not uid:
            return
        self._gone[uid] = None
        if len(self._gone) > _REMEMBERED_DELETIONS:
            del self._gone[next(iter(self._gone))]
