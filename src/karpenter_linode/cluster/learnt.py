"""What nodes have shown of their plans: where one came with less than predicted, the next one will too.

Without it, a pod that fits the prediction and not the node has a new node bought for it, and another, for ever
(spec/user-cases.md U77).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from karpenter_linode.model import labels
from karpenter_linode.model.karpenter import NodeClaim
from karpenter_linode.scheduling import resources as res

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from karpenter_linode.cluster.view import View
    from karpenter_linode.model.instance_type import InstanceType
    from karpenter_linode.model.karpenter import NodePool

_LEARNT: Final = (res.CPU, res.MEMORY, res.EPHEMERAL_STORAGE)
"""What a kubelet knows from its start; devices come later, and pods count by configuration."""


class LearntPlans:
    """Remembers the least that nodes of a plan have reported, for each NodeClass.

    Nothing is written down: a new process learns it again, in its first pass, from the nodes that are still there. Of a
    plan whose nodes have all gone it buys one node too many at the most before it knows again.
    """

    def __init__(self) -> None:
        self._least: dict[tuple[str, str], res.Resources] = {}
        self._adjusted: dict[tuple[str, str], tuple[tuple[InstanceType, ...], tuple[InstanceType, ...]]] = {}

    def learn(self, view: View) -> None:
        """Look at every node that has joined; only what disappoints is remembered."""
        for claim in view.all(NodeClaim):
            node = view.node_of(claim)
            if node is None:
                continue
            predicted, reported = (res.from_resource_list(status.allocatable) for status in (claim.status, node.status))
            key = (claim.spec.node_class_ref.name, claim.metadata.labels.get(labels.INSTANCE_TYPE, ""))
            for name in _LEARNT:
                if 0 < reported.get(name, 0) < predicted.get(name, 0):
                    self._note(key, name, reported[name])

    def adjusted(
        self, instance_types: Mapping[str, tuple[InstanceType, ...]], node_pools: Iterable[NodePool]
    ) -> dict[str, tuple[InstanceType, ...]]:
        """Plans by pool with the room that they really have; a tuple stays the same while nothing new is known.

        Args:
            instance_types: plans of each NodePool, by pool name.
            node_pools: the pools.
        """
        classes = {pool.name: pool.spec.template.spec.node_class_ref.name for pool in node_pools}
        return {pool: self._of_pool(pool, classes.get(pool, ""), plans) for pool, plans in instance_types.items()}

    def _note(self, key: tuple[str, str], name: str, amount: int) -> None:
        least = self._least.setdefault(key, {})
        if amount < least.get(name, amount + 1):
            least[name] = amount
            self._adjusted.clear()

    def _of_pool(self, pool: str, node_class: str, plans: tuple[InstanceType, ...]) -> tuple[InstanceType, ...]:
        kept = self._adjusted.get((pool, node_class))
        if kept is None or kept[0] is not plans:
            adjusted = tuple(self._of_plan(node_class, plan) for plan in plans)
            changed = any(new is not old for new, old in zip(adjusted, plans, strict=True))
            kept = self._adjusted[pool, node_class] = (plans, adjusted if changed else plans)
        return kept[1]

    def _of_plan(self, node_class: str, plan: InstanceType) -> InstanceType:
        missing = dict(self._missing(node_class, plan))
        if not missing:
            return plan
        kept = res.add(res.from_resource_list(plan.overhead.kube_reserved), missing)
        return replace(plan, overhead=replace(plan.overhead, kube_reserved=res.to_resource_list(kept)))

    def _missing(self, node_class: str, plan: InstanceType) -> Iterator[tuple[str, int]]:
        least = self._least.get((node_class, plan.name))
        if least is None:
            return
        predicted = res.allocatable(plan)
        for name, amount in sorted(least.items()):
            if predicted.get(name, 0) > amount:
                yield name, predicted[name] - amount
