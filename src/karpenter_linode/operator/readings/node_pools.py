"""Readings of NodePools: limits, usage, room for disruption (spec/karpenter-lifecycle.md 7.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.disruption.budgets import pool_budgets
from karpenter_linode.disruption.emptiness import EMPTY
from karpenter_linode.model.karpenter import NodePool
from karpenter_linode.operator.readings.amounts import amounts
from karpenter_linode.scheduling import resources as res

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from karpenter_linode.cluster.view import View
    from karpenter_linode.operator.metrics import Reading

_PREFIX: Final = "karpenter_nodepools_"
_REASONS: Final = (EMPTY,)


def read_node_pools(view: View, now: datetime) -> Iterator[Reading]:
    """What each pool has and may have, and how many of its nodes may leave now."""
    pools = view.all(NodePool)
    for pool in pools:
        for name, resources in (("limit", pool.spec.limits), ("usage", pool.status.resources)):
            for kind, amount in amounts(res.from_resource_list(resources or {})):
                yield _PREFIX + name, (pool.name, kind), amount
    states = view.state_nodes(now)
    for reason in _REASONS:
        for name, budget in pool_budgets(pools, states, reason, now).items():
            yield _PREFIX + "allowed_disruptions", (name, reason), budget.allowed
            yield _PREFIX + "nodes_consuming_budgets", (name, reason), budget.disrupting
