"""Takes instances down: one node of a pool, or the pool with its last node.

Deleting a Linode itself would make LKE build it anew, and lowering a pool's count would let LKE choose the victim: so
nodes are deleted by id (spec/linode-provider.md 4.6, traps 8 to 10).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from karpenter_linode.linode import tags
from karpenter_linode.linode.cluster_view import is_leaving, is_ours, node_reference
from karpenter_linode.linode.errors import LinodeNotFoundError
from karpenter_linode.model import labels
from karpenter_linode.ports import CloudError, InstanceNotFoundError

if TYPE_CHECKING:
    from karpenter_linode.linode.lanes import Lanes
    from karpenter_linode.linode.toolbox import Toolbox
    from karpenter_linode.model.linode import LinodeInstance, LKENode, LKEPool


class Deletion:
    """Deletes members of our pools.

    Args:
        tools: the API.
        lanes: a lane keeps a deletion and a growth of the same pools apart.
    """

    def __init__(self, tools: Toolbox, lanes: Lanes) -> None:
        self._tools, self._lanes = tools, lanes

    async def delete(self, number: int) -> None:
        """Start the deletion of an instance; see ``LinodeCloudProvider.delete``."""
        client, cluster = self._tools.client, self._tools.cluster
        try:
            instance = await client.get_instance(number)
        except LinodeNotFoundError as error:
            raise InstanceNotFoundError(f"instance {number} not found: {error}") from error
        pool = self._pool_of(instance, await client.list_pools(cluster.id))
        if pool is None:
            if is_leaving(instance) or tags.MANAGED in instance.tags:
                return  # its place in the pool is gone already, the machine follows
            raise CloudError(f"instance {number} is no member of a pool of this provider; it is left alone")
        async with self._lanes.of(_identity(pool)).exclusive():
            await self._delete_member(instance, pool)

    def _pool_of(self, instance: LinodeInstance, pools: tuple[LKEPool, ...]) -> LKEPool | None:
        """The pool of ours that holds the instance: by its list of members, else by what LKE wrote into the label."""
        ours = [pool for pool in pools if is_ours(pool)]
        for pool in ours:
            if any(node.instance_id == instance.id for node in pool.nodes):
                return pool
        named = node_reference(instance, self._tools.cluster.id)
        if named is None or instance.lke_cluster_id != self._tools.cluster.id or is_leaving(instance):
            return None
        return next((pool for pool in ours if pool.id == named[0] and not pool.nodes), None)

    async def _delete_member(self, instance: LinodeInstance, pool: LKEPool) -> None:
        client, cluster = self._tools.client, self._tools.cluster
        if (holder := self._tools.ledger.holder(instance.id)) and not tags.claimed_by(instance.tags):
            raise CloudError(f"instance {instance.id} is set aside for NodeClaim {holder}, which is being launched")
        try:
            fresh = await client.get_pool(cluster.id, pool.id)
            node = self._node_id(instance, fresh.nodes)
            if node is None:
                return
            if max(len(fresh.nodes), fresh.count) > 1:
                await client.delete_node(cluster.id, node)
            else:
                await client.delete_pool(cluster.id, pool.id)
        except LinodeNotFoundError:
            return  # somebody else was faster; whether the machine is gone, the next call sees

    def _node_id(self, instance: LinodeInstance, nodes: tuple[LKENode, ...]) -> str | None:
        listed = next((node.id for node in nodes if node.instance_id == instance.id), None)
        if listed is not None or nodes:
            return listed
        named = node_reference(instance, self._tools.cluster.id)
        return None if named is None else named[1]


def _identity(pool: LKEPool) -> tags.PoolIdentity:
    node_pool = (pool.labels or {}).get(labels.NODEPOOL) or tags.value_of(pool.tags, labels.NODEPOOL) or ""
    return tags.PoolIdentity(node_pool, pool.type, tags.value_of(pool.tags, tags.TEMPLATE_HASH) or "")
