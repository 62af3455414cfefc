"""Clusters, pools and nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from karpenter_linode.sim.linode import shapes

if TYPE_CHECKING:
    from karpenter_linode.sim.linode.calls import Call
    from karpenter_linode.sim.linode.records import Pool

_CLUSTER_FIELDS: Final = frozenset({"id", "label", "region", "tags", "k8s_version", "created", "updated"})


def list_clusters(call: Call) -> dict[str, Any]:
    """Clusters."""
    rows = [shapes.cluster(item, call.version) for item in call.world.clusters.values()]
    return call.page(rows, _CLUSTER_FIELDS)


def get_cluster(call: Call) -> dict[str, Any]:
    """A cluster."""
    return shapes.cluster(call.world.cluster(call.number("cluster")), call.version)


def list_pools(call: Call) -> dict[str, Any]:
    """Pools of a cluster; a filter is ignored, as the API does not filter them reliably."""
    cluster = call.world.cluster(call.number("cluster"))
    rows = [shapes.pool(item, cluster.tier, call.version) for item in call.world.pools.of(cluster.id)]
    return structs.replace(call, filter=None).page(rows)


def create_pool(call: Call) -> dict[str, Any]:
    """Make a pool."""
    cluster = call.world.cluster(call.number("cluster"))
    return _shown(call, call.world.pools.create(cluster, call.world.plan(call.body), call.body))


def get_pool(call: Call) -> dict[str, Any]:
    """A pool."""
    return _shown(call, _pool(call))


def update_pool(call: Call) -> dict[str, Any]:
    """Change a pool."""
    pool = _pool(call)
    call.world.pools.update(call.world.cluster(pool.cluster), pool, call.body)
    return _shown(call, pool)


def delete_pool(call: Call) -> dict[str, Any]:
    """Delete a pool."""
    call.world.pools.delete(_pool(call))
    return {}


def recycle_pool(call: Call) -> dict[str, Any]:
    """Replace every member of a pool."""
    pool = _pool(call)
    for member in tuple(pool.members):
        call.world.pools.recycle(call.world.cluster(pool.cluster), pool, member)
    return {}


def get_node(call: Call) -> dict[str, Any]:
    """A member of a pool."""
    _, member = call.world.pools.find_member(call.number("cluster"), call.path["node"])
    return shapes.member(member)


def delete_node(call: Call) -> dict[str, Any]:
    """Delete a member of a pool."""
    call.world.pools.delete_member(call.number("cluster"), call.path["node"])
    return {}


def recycle_node(call: Call) -> dict[str, Any]:
    """Replace a member of a pool."""
    pool, member = call.world.pools.find_member(call.number("cluster"), call.path["node"])
    call.world.pools.recycle(call.world.cluster(pool.cluster), pool, member)
    return {}


def _pool(call: Call) -> Pool:
    return call.world.pool(call.number("cluster"), call.number("pool"))


def _shown(call: Call, pool: Pool) -> dict[str, Any]:
    return shapes.pool(pool, call.world.cluster(pool.cluster).tier, call.version)
