"""Published devices of the cluster, found by the place that wants to use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karpenter_linode.dra.pools import gather
from karpenter_linode.model.resource import DeviceID

if TYPE_CHECKING:
    from collections.abc import Iterable

    from karpenter_linode.dra.features import Features
    from karpenter_linode.dra.in_use import InUse
    from karpenter_linode.dra.pools import Pool, Reach
    from karpenter_linode.dra.selector import Shapes
    from karpenter_linode.model.resource import ResourceSlice

_PoolName = tuple[str, str]


class PublishedDevices:
    """All slices that count, by pool and by node.

    Args:
        slices: every slice of the cluster.
        initialized_nodes: slices that belong to another Node are hidden: its predicted devices stand in for them.
        features: what the cluster has switched on.
        shapes: where device shapes are found.
    """

    def __init__(
        self, slices: Iterable[ResourceSlice], initialized_nodes: frozenset[str], features: Features, shapes: Shapes
    ) -> None:
        self._features = features
        self._shapes = shapes
        self._slices: dict[_PoolName, list[ResourceSlice]] = {}
        self._of_node: dict[str, dict[_PoolName, None]] = {}
        self._anywhere: dict[_PoolName, None] = {}
        self._hidden: dict[str, list[DeviceID]] = {}
        for item in slices:
            if all(name in initialized_nodes for name in owner_nodes(item)):
                self._add(item)
            else:
                self._hide(item)

    @property
    def only_node_local(self) -> bool:
        """Whether every slice belongs to a node, so that a NodeClaim reaches none of them."""
        return not self._anywhere

    def pools(self, reach: Reach, node_name: str) -> tuple[Pool, ...]:
        """The pools in reach of a place by driver and name, those that wait for binding conditions last."""
        names = sorted({**self._of_node.get(node_name, {}), **self._anywhere}) if node_name else sorted(self._anywhere)
        found = [gather(self._slices[name], reach, self._features, self._shapes, newest_only=True) for name in names]
        return tuple(sorted((pool for pool in found if pool is not None), key=lambda pool: pool.binds))

    def hidden_in_use(self, node_name: str, held: InUse) -> dict[str, int]:
        """How many devices of each driver are in use on a node whose slices are hidden."""
        counts: dict[str, int] = {}
        for device in self._hidden.get(node_name, ()):
            if device in held:
                counts[device.driver] = counts.get(device.driver, 0) + 1
        return counts

    def _add(self, item: ResourceSlice) -> None:
        spec = item.spec
        name = (spec.driver, spec.pool.name)
        self._slices.setdefault(name, []).append(item)
        if spec.node_name and not spec.all_nodes:
            self._of_node.setdefault(spec.node_name, {})[name] = None
        else:
            self._anywhere[name] = None

    def _hide(self, item: ResourceSlice) -> None:
        for name in dict.fromkeys((*owner_nodes(item), item.spec.node_name)):
            devices = self._hidden.setdefault(name, [])
            for device in item.spec.devices:
                devices.append(DeviceID(item.spec.driver, item.spec.pool.name, device.name))


def owner_nodes(item: ResourceSlice) -> tuple[str, ...]:
    """The Nodes that own a slice; ownership decides, not reach (trap T20)."""
    return tuple(owner.name for owner in item.metadata.owner_references if owner.kind == "Node")
