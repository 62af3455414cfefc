"""What the API says about our pools and instances, read in few calls and shared by everybody who waits for it.

A read lists the pools and the tagged instances of the cluster, and fetches one by one only those members that carry no
tags yet (on the standard tier a pool's tags don't reach its instances). Callers that ask while a read is on its way
share the next one, so any number of NodeClaims costs the same.
"""

from __future__ import annotations

import asyncio
import re
from datetime import datetime
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from karpenter_linode.linode import tags
from karpenter_linode.linode.errors import LinodeNotFoundError
from karpenter_linode.linode.plan_filter import ENTERPRISE
from karpenter_linode.model import labels
from karpenter_linode.model.linode import LinodeInstance, LKEPool

if TYPE_CHECKING:
    from collections.abc import Iterable

    from karpenter_linode.linode.client import LinodeClient
    from karpenter_linode.linode.discovery import Cluster
    from karpenter_linode.ports import Clock

_LABEL: Final = re.compile(r"lke([0-9]+)-([0-9]+)-([0-9a-f]+)")
_POOL_ID: Final = "nodepool"
_PARALLEL_READS: Final = 8
_LEAVING: Final = frozenset({"deleting", "shutting_down"})


class ClusterView(Struct, frozen=True):
    """Our part of the cluster at one moment.

    Args:
        pools: pools that we made, by id.
        instances: members of those pools, and instances of the cluster that carry our tags, by instance id.
        pool_of: pool id of each instance that belongs to one of the pools.
        waiting_since: when a member without an instance was first seen, by node id.
    """

    pools: tuple[LKEPool, ...] = ()
    instances: dict[int, LinodeInstance] = field(default_factory=dict)
    pool_of: dict[int, int] = field(default_factory=dict)
    waiting_since: dict[str, datetime] = field(default_factory=dict)

    def pools_for(self, identity: tags.PoolIdentity) -> tuple[LKEPool, ...]:
        """Pools of that identity, oldest first. Normally one; a lost answer or a full pool can make it more."""
        return tuple(pool for pool in self.pools if serves(pool, identity))

    def members(self, pools: Iterable[LKEPool]) -> tuple[LinodeInstance, ...]:
        """Instances of some pools, by id."""
        ids = {pool.id for pool in pools}
        return tuple(self.instances[item] for item in sorted(self.pool_of) if self.pool_of[item] in ids)


def is_ours(pool: LKEPool) -> bool:
    """Whether a pool carries the tags of a pool that we made."""
    return tags.MANAGED in pool.tags and tags.value_of(pool.tags, labels.NODEPOOL) is not None


def serves(pool: LKEPool, identity: tags.PoolIdentity) -> bool:
    """Whether a pool has that identity; the full NodePool name in its labels guards against equal shortened tags."""
    return (
        is_ours(pool)
        and pool.type == identity.instance_type
        and tags.tag(labels.NODEPOOL, identity.node_pool) in pool.tags
        and tags.value_of(pool.tags, tags.TEMPLATE_HASH) == identity.template
        and (pool.labels or {}).get(labels.NODEPOOL, identity.node_pool) == identity.node_pool
    )


def is_leaving(instance: LinodeInstance) -> bool:
    """Whether an instance is on its way out."""
    return instance.status in _LEAVING


def node_pool_of(pool_labels: dict[str, str] | None, carried: Iterable[str]) -> str:
    """NodePool name: in full from the pool's labels, else from a tag, where a long name ends in a hash."""
    return (pool_labels or {}).get(labels.NODEPOOL) or tags.value_of(carried, labels.NODEPOOL) or ""


def node_reference(instance: LinodeInstance, cluster: int) -> tuple[int, str] | None:
    """Pool id and node id that LKE wrote into an instance's label, or None where somebody renamed it."""
    match = _LABEL.fullmatch(instance.label)
    if match is None or int(match[1]) != cluster:
        return None
    return int(match[2]), f"{match[2]}-{match[3]}"


class ClusterReader:
    """Reads views, one at a time."""

    def __init__(self, client: LinodeClient, cluster: Cluster, clock: Clock) -> None:
        self._client, self._cluster, self._clock = client, cluster, clock
        self._next: asyncio.Task[ClusterView] | None = None
        self._turn = asyncio.Lock()
        self._waiting_since: dict[str, datetime] = {}

    async def read(self) -> ClusterView:
        """A view whose reading began after this call.

        Raises:
            LinodeApiError: any part of it failed; a view is never partial.
        """
        if self._next is None:
            self._next = asyncio.create_task(self._read_in_turn())
            self._next.add_done_callback(_mark_seen)
        return await asyncio.shield(self._next)

    async def _read_in_turn(self) -> ClusterView:
        async with self._turn:
            self._next = None
            return await self._read()

    async def _read(self) -> ClusterView:
        # Side by side: a member that one of the two answers is too old to show is fetched below, or comes next time.
        all_pools, listed = await asyncio.gather(
            self._client.list_pools(self._cluster.id),
            self._client.list_instances({"tags": {"+contains": tags.MANAGED}}),
        )
        pools = tuple(sorted((pool for pool in all_pools if is_ours(pool)), key=lambda pool: pool.id))
        instances = {
            item.id: item for item in listed if item.lke_cluster_id == self._cluster.id and tags.MANAGED in item.tags
        }
        pool_of = {node.instance_id: pool.id for pool in pools for node in pool.nodes if node.instance_id}
        for instance in await self._fetch(sorted(set(pool_of) - set(instances))):
            instances[instance.id] = instance
        if self._cluster.tier == ENTERPRISE:
            pool_of |= self._tagged_members(pools, instances.values())
        pool_of = {item: pool for item, pool in pool_of.items() if item in instances}
        return ClusterView(pools, instances, pool_of, self._note_waiting(pools))

    async def _fetch(self, ids: Iterable[int]) -> list[LinodeInstance]:
        slots = asyncio.Semaphore(_PARALLEL_READS)

        async def one(item: int) -> LinodeInstance | None:
            async with slots:
                try:
                    return await self._client.get_instance(item)
                except LinodeNotFoundError:
                    return None  # deleted under us; LKE will replace it

        found = await asyncio.gather(*(one(item) for item in ids))
        return [item for item in found if item is not None]

    def _tagged_members(self, pools: Iterable[LKEPool], instances: Iterable[LinodeInstance]) -> dict[int, int]:
        """Enterprise pools list their members late; the tags that LKE puts on instances tell earlier."""
        ids = {str(pool.id): pool for pool in pools}
        members: dict[int, int] = {}
        for instance in instances:
            pool = ids.get(tags.value_of(instance.tags, _POOL_ID) or "")
            if pool is not None and instance.type == pool.type and not is_leaving(instance):
                members[instance.id] = pool.id
        return members

    def _note_waiting(self, pools: Iterable[LKEPool]) -> dict[str, datetime]:
        now = self._clock.now()
        empty = [node.id for pool in pools for node in pool.nodes if not node.instance_id]
        self._waiting_since = {node: self._waiting_since.get(node, now) for node in empty}
        return dict(self._waiting_since)


def _mark_seen(task: asyncio.Task[ClusterView]) -> None:
    """Count a failure as seen even when everybody who waited for it has been cancelled."""
    if not task.cancelled():
        task.exception()
