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
    ready = complete_drivers(slices)
    for driver in filter(None, (name.strip() for name in drivers)):
        if driver not in ready:
            message = f'DRA driver "{driver}" has not published a complete resource pool'
            return ("DRADriverPoolsNotPublished", message)
    return None


def complete_drivers(slices: Iterable[ResourceSlice]) -> frozenset[str]:
    """Drivers with at least one complete pool: every slice of the newest generation is there."""
    seen: dict[tuple[str, str], tuple[int, int, int]] = {}
    for item in slices:
        pool = item.spec.pool
        key = (item.spec.driver, pool.name)
        generation, count, _ = seen.get(key, (-1, 0, 0))
        if pool.generation > generation:
            seen[key] = (pool.generation, 1, pool.resource_slice_count)
        elif pool.generation == generation:
            seen[key] = (generation, count + 1, pool.resource_slice_count)
    return frozenset(driver for (driver, _), (_, count, wanted) in seen.items() if count == wanted > 0)
