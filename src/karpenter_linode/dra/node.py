"""Allocation on one existing node, exactly as kube-scheduler does it (spec/dra-allocation.md 1.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karpenter_linode.dra.errors import AllocationError
from karpenter_linode.dra.features import ALL_FEATURES, Features
from karpenter_linode.dra.in_use import InUse, left_of
from karpenter_linode.dra.pools import NodeReach, Pool, gather
from karpenter_linode.dra.prepare import Preparer
from karpenter_linode.dra.search import Found, Search
from karpenter_linode.dra.selector import Selectors, Shapes
from karpenter_linode.dra.view import Usage, View
from karpenter_linode.model.core import NodeSelector, NodeSelectorTerm
from karpenter_linode.model.quantity import Quantity
from karpenter_linode.model.requirement_spec import NodeSelectorRequirement
from karpenter_linode.model.resource import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from karpenter_linode.dra.capacity import Amounts
    from karpenter_linode.dra.devices import Candidate
    from karpenter_linode.dra.search import Choice
    from karpenter_linode.model.core import Node
    from karpenter_linode.model.resource import DeviceClass, ResourceSlice

DEFAULT_STEPS = 200_000


def allocate_on_node(
    node: Node,
    slices: Sequence[ResourceSlice],
    classes: Iterable[DeviceClass],
    claims: Sequence[ResourceClaim],
    in_use: InUse,
    features: Features = ALL_FEATURES,
    steps: int = DEFAULT_STEPS,
) -> tuple[AllocationResult, ...] | None:
    """Allocate claims together on a node, as kube-scheduler would.

    Args:
        node: where; its name and labels decide which slices it reaches.
        slices: every slice of the cluster.
        classes: every class of the cluster.
        claims: claims without an allocation, in the pod's order; defaults must be filled in.
        in_use: what other claims hold.
        features: what the cluster has switched on.
        steps: how many devices may be tried.

    Returns:
        One result for each claim, or None when this node cannot serve them.

    Raises:
        AllocationError: kube-scheduler would give the pod up with an error.
    """
    selectors, shapes = Selectors(), Shapes()
    preparer = Preparer(classes, features, selectors, strict=True)
    prepared = [preparer.claim(claim) for claim in claims]
    pools = node_pools(node, slices, features, shapes)
    usable = [pool for pool in pools if not pool.state]
    view = View(
        (candidate for pool in usable for candidate in pool.candidates),
        tuple(pool for pool in pools if pool.state),
        features,
    )
    found = Search(prepared, view, usage_of(view, usable, in_use), None, steps).run()
    return None if found is None else results(found, view, len(claims), node.name)


def node_pools(node: Node, slices: Iterable[ResourceSlice], features: Features, shapes: Shapes) -> list[Pool]:
    """The pools in reach of a node by driver and name, those that wait for binding conditions last."""
    by_pool: dict[tuple[str, str], list[ResourceSlice]] = {}
    for item in slices:
        by_pool.setdefault((item.spec.driver, item.spec.pool.name), []).append(item)
    reach = NodeReach(node.name, node.metadata.labels)
    pools = [gather(by_pool[key], reach, features, shapes) for key in sorted(by_pool)]
    return sorted((pool for pool in pools if pool is not None), key=lambda pool: pool.binds)


def usage_of(view: View, pools: Iterable[Pool], in_use: InUse) -> Usage:
    """What is taken of a view's devices, and what is left of its pools' counters."""
    taken = 0
    shares: dict[int, Amounts] = {}
    for device in in_use.exclusive:
        index = view.position.get(device)
        if index is not None:
            taken |= 1 << index
    for device, amounts in in_use.shares.items():
        index = view.position.get(device)
        if index is None:
            continue
        if view.candidates[index].shared:
            shares[index] = amounts
        else:
            taken |= 1 << index
    return Usage(taken, shares, {pool.key: left_of(pool, in_use) for pool in pools if pool.budgets})


def results(found: Found, view: View, claims: int, node_name: str) -> tuple[AllocationResult, ...]:
    """The search's answer as each claim's ``status.allocation``."""
    by_claim: list[list[Choice]] = [[] for _ in range(claims)]
    for choice in found.choices:
        by_claim[choice.claim].append(choice)
    return tuple(
        AllocationResult(
            DeviceAllocationResult(tuple(_result(choice, view.candidates[choice.index]) for choice in choices)),
            _node_selector([view.candidates[choice.index] for choice in choices], node_name),
        )
        for choices in by_claim
    )


def _result(choice: Choice, candidate: Candidate) -> DeviceRequestAllocationResult:
    result = DeviceRequestAllocationResult(
        request=choice.alternative.label,
        driver=candidate.id.driver,
        pool=candidate.id.pool,
        device=candidate.id.device,
        admin_access=True if choice.alternative.admin else None,
        tolerations=choice.alternative.tolerations,
    )
    if choice.consumed is None:
        return result
    consumed = {
        name: Quantity(amount, candidate.device.capacity[name].value.notation)
        for name, amount in choice.consumed.items()
    }
    return DeviceRequestAllocationResult(
        request=result.request,
        driver=result.driver,
        pool=result.pool,
        device=result.device,
        admin_access=result.admin_access,
        consumed_capacity=consumed,
        tolerations=result.tolerations,
    )


def _node_selector(candidates: Sequence[Candidate], node_name: str) -> NodeSelector | None:
    """Where the devices can be used (spec 1.8, point 9): the first one that is local to its node settles it.

    Raises:
        AllocationError: a slice before that selects its nodes by something else than exactly one term.
    """
    expressions: dict[NodeSelectorRequirement, None] = {}
    fields: dict[NodeSelectorRequirement, None] = {}
    for candidate in candidates:
        if candidate.local:
            only = NodeSelectorRequirement("metadata.name", "In", (node_name,))
            return NodeSelector((NodeSelectorTerm(match_fields=(only,)),))
        if candidate.selector is None:
            continue
        terms = candidate.selector.node_selector_terms
        if len(terms) != 1:
            raise AllocationError(
                "dra-selector-terms",
                f"device {candidate.id}: its slice selects nodes with {len(terms)} terms, exactly one is supported",
            )
        expressions.update(dict.fromkeys(terms[0].match_expressions))
        fields.update(dict.fromkeys(terms[0].match_fields))
    if not expressions and not fields:
        return None
    return NodeSelector((NodeSelectorTerm(tuple(expressions), tuple(fields)),))
