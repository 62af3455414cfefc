"""Devices as the search sees them: published or predicted, with everything about them that decides worked out once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karpenter_linode.model.requirements import EMPTY, Requirements

if TYPE_CHECKING:
    from karpenter_linode.dra.selector import Shape
    from karpenter_linode.model.core import NodeSelector
    from karpenter_linode.model.resource import Device, DeviceID

PoolKey = tuple[str, str, bool]
"""Driver, pool name, and whether the pool is predicted."""
CounterKey = tuple[str, str]
"""Counter set and counter."""


class Candidate:
    """A device that a claim may be given.

    Args:
        id: its identity.
        device: as published or predicted.
        shape: what selectors see.
        local: whether it belongs to one node.
        selector: the node selector of its slice or its own, None for every node or one node.
        requirements: that selector as requirements.
        shared: whether several claims may hold shares of it.
    """

    __slots__ = ("counters", "device", "id", "local", "pool", "requirements", "selector", "shape", "shared", "unusable")

    def __init__(
        self,
        id: DeviceID,  # noqa: A002 - the field's word, as in Target and DeviceGrant
        device: Device,
        shape: Shape,
        *,
        local: bool,
        selector: NodeSelector | None = None,
        requirements: Requirements = EMPTY,
        shared: bool = False,
    ) -> None:
        self.id = id
        self.device = device
        self.shape = shape
        self.local = local
        self.selector = selector
        self.requirements = requirements
        self.shared = shared
        self.pool: PoolKey = (id.driver, id.pool, id.template)
        self.counters = consumed_counters(device)
        self.unusable = ""


def consumed_counters(device: Device) -> tuple[tuple[CounterKey, int], ...]:
    """What a device draws from each counter, in whole units rounded up (spec 5.8, trap T17)."""
    return tuple(
        ((consumption.counter_set, name), counter.value.units)
        for consumption in device.consumes_counters
        for name, counter in consumption.counters.items()
    )
