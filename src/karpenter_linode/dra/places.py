"""What each target can use: its view of the devices, and what of them is taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karpenter_linode.dra.in_use import InUse, left_of
from karpenter_linode.dra.pools import ClaimReach, NodeReach, Pool
from karpenter_linode.dra.view import Usage, View
from karpenter_linode.model.labels import WELL_KNOWN

if TYPE_CHECKING:
    from collections.abc import Hashable

    from karpenter_linode.dra.allocation import Target
    from karpenter_linode.dra.capacity import Amounts
    from karpenter_linode.dra.cluster import PublishedDevices
    from karpenter_linode.dra.devices import CounterKey, PoolKey
    from karpenter_linode.dra.features import Features
    from karpenter_linode.dra.ledger import Ledger
    from karpenter_linode.dra.predicted import Prediction, Predictions
    from karpenter_linode.model.instance_type import InstanceType
    from karpenter_linode.model.requirements import Requirements

_Pools = tuple[Pool, ...]


class Place:
    """The devices of one instance type of a target.

    Args:
        view: the devices in order.
        budgets: what is left of each pool's counters before this round.
    """

    __slots__ = ("budgets", "number", "view")

    def __init__(self, number: int, view: View, budgets: dict[PoolKey, dict[CounterKey, int]]) -> None:
        self.number = number
        self.view = view
        self.budgets = budgets


class Places:
    """Finds the place of an instance type of a target. Places with equal devices are one object."""

    def __init__(self, published: PublishedDevices, predictions: Predictions, held: InUse, features: Features) -> None:
        self._published = published
        self._predictions = predictions
        self._held = held
        self._features = features
        self._pools: dict[Hashable, tuple[int, _Pools]] = {}
        self._places: dict[tuple[int, int], Place] = {}
        self._hidden: dict[str, dict[str, int]] = {}

    def of(self, target: Target, instance_type: InstanceType | None) -> Place:
        """The place; without an instance type, published devices alone."""
        number, pools = self._pools_of(target)
        prediction = None
        if instance_type is not None and target.use_templates:
            prediction = self._predictions.of(instance_type.dynamic_resources)
        key = (number, -1 if prediction is None else prediction.number)
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = self._build(len(self._places), pools, prediction)
        return place

    def usage(self, place: Place, target: Target, instance_type: str, ledger: Ledger) -> Usage:
        """What is taken of a place's devices, by claims of the cluster and in this round."""
        at = (target.id, instance_type)
        taken, bit = 0, 1
        shares: dict[int, Amounts] = {}
        for index, candidate in enumerate(place.view.candidates):
            device = candidate.id
            if candidate.shared:
                amounts = _summed(self._held.shares.get(device), ledger.shares(device, at))
                if amounts is not None:
                    shares[index] = amounts
            elif device in self._held.shares or ledger.taken(device, at):
                taken |= bit
            if device in self._held.exclusive:
                taken |= bit
            bit <<= 1
        if target.node_name and target.use_templates:
            taken = self._take_hidden(place, target.node_name, taken)
        remaining = {}
        for pool, budget in place.budgets.items():
            drawn = ledger.counters(pool, at)
            remaining[pool] = {counter: left - drawn.get(counter, 0) for counter, left in budget.items()}
        return Usage(taken, shares, remaining)

    def _take_hidden(self, place: Place, node_name: str, taken: int) -> int:
        """Devices in use on a node whose slices are hidden use up as many predicted ones of their driver."""
        hidden = self._hidden.get(node_name)
        if hidden is None:
            hidden = self._hidden[node_name] = self._published.hidden_in_use(node_name, self._held)
        left = dict(hidden)
        for index, candidate in enumerate(place.view.candidates):
            device = candidate.id
            if device.template and left.get(device.driver, 0) and not taken >> index & 1:
                left[device.driver] -= 1
                taken |= 1 << index
        return taken

    def _pools_of(self, target: Target) -> tuple[int, _Pools]:
        key: Hashable
        if target.node_name:
            key = target.id
        elif self._published.only_node_local:
            key = None
        else:
            key = target.requirements
        known = self._pools.get(key)
        if known is None:
            reach = self._reach(target)
            known = self._pools[key] = (len(self._pools), self._published.pools(reach, target.node_name))
        return known

    def _reach(self, target: Target) -> NodeReach | ClaimReach:
        if target.node_name:
            return NodeReach(target.node_name, labels_of(target.requirements))
        return ClaimReach(target.requirements, WELL_KNOWN)

    def _build(self, number: int, pools: _Pools, prediction: Prediction | None) -> Place:
        published = [candidate for pool in pools for candidate in pool.candidates]
        broken = tuple(pool for pool in pools if pool.state)
        budgets = {pool.key: left_of(pool, self._held) for pool in pools if pool.budgets and not pool.state}
        if prediction is None:
            return Place(number, View(published, broken, self._features), budgets)
        budgets.update(prediction.budgets)
        view = View((*published, *prediction.candidates), broken, self._features, prediction.bindings)
        return Place(number, view, budgets)


def labels_of(requirements: Requirements) -> dict[str, str]:
    """The labels of a node, from requirements made of them."""
    return {item.key: next(iter(item.values)) for item in requirements if not item.complement and len(item.values) == 1}


def _summed(left: Amounts | None, right: Amounts | None) -> Amounts | None:
    if left is None or right is None:
        return right if left is None else left
    return {name: left.get(name, 0) + right.get(name, 0) for name in {**left, **right}}
