"""Initialization: the node is ready for the pods it was bought for (spec/karpenter-lifecycle.md 1.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karpenter_linode.lifecycle.conditions import of_node_claim, with_conditions
from karpenter_linode.lifecycle.effects import LogLine, Patch
from karpenter_linode.lifecycle.step import Step
from karpenter_linode.model import labels
from karpenter_linode.model.condition_types import INITIALIZED, REGISTERED
from karpenter_linode.model.core import Node
from karpenter_linode.model.meta import is_true
from karpenter_linode.scheduling.taints import is_ephemeral

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from karpenter_linode.cluster.view import View
    from karpenter_linode.model.karpenter import NodeClaim
    from karpenter_linode.model.resource import ResourceSlice

Gate = tuple[str, str]


def initialize(claim: NodeClaim, view: View, now: datetime, *, ignore_dra_requests: bool) -> Step:
    """Check the gates in order; the first closed one names the condition's reason. There is no time limit here."""
    conditions = of_node_claim(claim, now)
    if conditions.status(INITIALIZED) != "Unknown":
        return Step(with_conditions(claim, conditions.refresh(INITIALIZED)))
    if not conditions.is_true(REGISTERED):
        return Step(with_conditions(claim, conditions))
    node = view.node_of(claim)
    closed = first_closed_gate(claim, node, view, ignore_dra_requests=ignore_dra_requests)
    if closed is not None or node is None:
        reason, message = closed or ("NodeNotFound", "Node not registered with cluster")
        return Step(with_conditions(claim, conditions.set_unknown(INITIALIZED, reason, message)))
    allocatable = {name: str(amount) for name, amount in sorted(node.status.allocatable.items())}
    effects = (
        Patch(Node, node.name, {"metadata": {"labels": {labels.INITIALIZED: "true"}}}),
        LogLine(
            "info",
            "initialized nodeclaim",
            {
                "NodeClaim": claim.name,
                "Node": node.name,
                "provider-id": claim.status.provider_id,
                "allocatable": allocatable,
            },
        ),
    )
    return Step(with_conditions(claim, conditions.set_true(INITIALIZED)), effects)


def first_closed_gate(claim: NodeClaim, node: Node | None, view: View, *, ignore_dra_requests: bool) -> Gate | None:
    """Reason and message of the first gate that isn't open, or None."""
    if node is None:
        return ("NodeNotFound", "Node not registered with cluster")
    if not is_true(node.status.conditions, "Ready"):
        return ("NodeNotReady", "Node status is NotReady")
    startup = {(taint.key, taint.effect): taint for taint in claim.spec.startup_taints}
    for taint in node.spec.taints:
        if (taint.key, taint.effect) in startup:
            return ("StartupTaintsExist", f'StartupTaint "{startup[taint.key, taint.effect]}" still exists')
    for taint in node.spec.taints:
        if is_ephemeral(taint):
            return ("KnownEphemeralTaintsExist", f'KnownEphemeralTaint "{taint}" still exists')
    for name, asked in sorted(claim.spec.resources.requests.items()):
        reported = node.status.allocatable.get(name)
        if asked.nano and (reported is None or not reported.nano):
            return ("ResourceNotRegistered", f'Resource "{name}" was requested but not registered')
    return None if ignore_dra_requests else _driver_gate(claim, view.slices_of(node.name))


def _driver_gate(claim: NodeClaim, slices: Iterable[ResourceSlice]) -> Gate | None:
    drivers = claim.metadata.annotations.get(labels.REQUESTED_DRA_DRIVERS, "").split(",")
    published = complete_drivers(slices)
    for driver in filter(None, (name.strip() for name in drivers)):
        message = f'DRA driver "{driver}" has not published a complete resource pool'
        if driver not in published:
            return ("DRADriverPoolsNotPublished", message)
        expected = _expected_devices(claim, driver)
        if published[driver] < expected:
            found = f"{published[driver]} of the {expected} devices that the plan has"
            return ("DRADriverPoolsNotPublished", f"{message}: {found}")
    return None


def _expected_devices(claim: NodeClaim, driver: str) -> int:
    # A driver that finds its devices one after another may publish a pool that is complete and still too small. A node
    # that counted as ready then would not fit the pods it was bought for, and a second one would be bought.
    text = claim.metadata.labels.get(labels.LINODE_INSTANCE_GPU_COUNT, "")
    return int(text) if driver == labels.NVIDIA_DRIVER and text.isdecimal() else 0


def complete_drivers(slices: Iterable[ResourceSlice]) -> dict[str, int]:
    """Devices in complete pools, by driver. A pool is complete when every slice of its newest generation is there.

    Slices that disagree on how many there are leave it incomplete, as they do for an allocation (``dra.pools``).
    """
    pools: dict[tuple[str, str], list[ResourceSlice]] = {}
    for item in slices:
        newest = pools.setdefault((item.spec.driver, item.spec.pool.name), [])
        if newest and item.spec.pool.generation > newest[0].spec.pool.generation:
            newest.clear()
        if not newest or item.spec.pool.generation == newest[0].spec.pool.generation:
            newest.append(item)
    complete: dict[str, int] = {}
    for (driver, _), newest in sorted(pools.items()):
        if {item.spec.pool.resource_slice_count for item in newest} == {len(newest)}:
            complete[driver] = complete.get(driver, 0) + sum(len(item.spec.devices) for item in newest)
    return complete
