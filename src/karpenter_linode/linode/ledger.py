"""Which instance is set aside for which NodeClaim, until its tags say so (spec/linode-provider.md 10.20)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from karpenter_linode.linode import tags

if TYPE_CHECKING:
    from collections.abc import Iterable

    from karpenter_linode.linode.cluster_view import ClusterView
    from karpenter_linode.model.linode import LinodeInstance
    from karpenter_linode.ports import Clock

_KEPT: Final = timedelta(minutes=10)


class _Entry(Struct, frozen=True):
    node_claim: str
    since: datetime


class Ledger:
    """One NodeClaim for each instance and one instance for each NodeClaim; the tags on the instance come first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._by_instance: dict[int, _Entry] = {}

    def set_aside(self, instance: int, node_claim: str) -> None:
        """Give an instance to a NodeClaim, and note the time."""
        self._by_instance[instance] = _Entry(node_claim, self._clock.now())

    def release(self, instance: int) -> None:
        """Take it back."""
        self._by_instance.pop(instance, None)

    def holder(self, instance: int) -> str:
        """The NodeClaim that an instance is set aside for, or nothing; one that nobody came back for is free again."""
        entry = self._by_instance.get(instance)
        return "" if entry is None or self._has_lapsed(entry) else entry.node_claim

    def held_by(self, node_claim: str) -> int | None:
        """The instance that is set aside for a NodeClaim."""
        return next((item for item, entry in self._by_instance.items() if entry.node_claim == node_claim), None)

    def is_free(self, instance: LinodeInstance) -> bool:
        """Whether neither a tag nor this ledger gives the instance to anybody."""
        return not tags.claimed_by(instance.tags) and not self.holder(instance.id)

    def prune(self, view: ClusterView, waiting: Iterable[str]) -> None:
        """Forget instances that are gone, and those that nobody has come back for."""
        still = set(waiting)
        self._by_instance = {
            item: entry
            for item, entry in self._by_instance.items()
            if item in view.instances and (entry.node_claim in still or not self._has_lapsed(entry))
        }

    def _has_lapsed(self, entry: _Entry) -> bool:
        return self._clock.now() - entry.since >= _KEPT
