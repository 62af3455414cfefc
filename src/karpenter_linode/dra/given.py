"""Claims that have devices already, and what they leave of a target (spec/dra-allocation.md 5.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karpenter_linode.dra import explain as why
from karpenter_linode.dra.places import labels_of
from karpenter_linode.dra.pools import selector_requirements
from karpenter_linode.model.core import NodeSelector
from karpenter_linode.model.labels import WELL_KNOWN
from karpenter_linode.model.reason import Reason
from karpenter_linode.model.selectors import term_holds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from karpenter_linode.dra.allocation import ClaimAllocation, Target
    from karpenter_linode.dra.known import KnownClaim
    from karpenter_linode.model.requirements import Requirements
    from karpenter_linode.model.resource import ResourceClaim


class Wanted:
    """Claims still to be allocated, and what the pod's other claims leave of a target.

    Args:
        pending: claims without devices, each once.
        requirements: the target's, narrowed by where the other claims can be used.
        allowed: instance types that the other claims were given devices for; None for any.
    """

    __slots__ = ("allowed", "pending", "requirements")

    def __init__(self, pending: list[KnownClaim], requirements: Requirements, allowed: frozenset[str] | None) -> None:
        self.pending = pending
        self.requirements = requirements
        self.allowed = allowed


def wanted(target: Target, claims: Iterable[KnownClaim], given: Mapping[str, ClaimAllocation]) -> Wanted | Reason:
    """Sort a pod's claims.

    Args:
        target: where the pod would go.
        claims: the pod's claims; a claim listed twice counts once (trap T4).
        given: claims that were given devices in this round. They are looked at first: two deleting pods may share a
            claim that the first of them has been given anew (trap T3).

    Returns:
        What is left to do, or why a claim's devices cannot be used from the target.
    """
    requirements = target.requirements
    allowed: frozenset[str] | None = None
    pending: dict[str, KnownClaim] = {}
    for item in claims:
        mine = given.get(item.key)
        if mine is not None:
            narrowed = _in_memory(target, mine, requirements)
            if mine.bound:
                names = frozenset(mine.devices)
                allowed = names if allowed is None else allowed & names
        elif item.allocated:
            narrowed = _in_cluster(target, item.claim, requirements)
        else:
            pending.setdefault(item.key, item)
            continue
        if isinstance(narrowed, Reason):
            return narrowed
        requirements = narrowed
    return Wanted(list(pending.values()), requirements, allowed)


def _in_memory(target: Target, claim: ClaimAllocation, requirements: Requirements) -> Requirements | Reason:
    if claim.bound:
        return requirements if claim.target_id == target.id else why.bound_elsewhere(claim, target)
    total = claim.total_requirements
    if not requirements.compatible(total, WELL_KNOWN):
        return why.incompatible("in-memory", claim.claim, target, requirements.incompatibility(total, WELL_KNOWN))
    return requirements.merge(total)


def _in_cluster(target: Target, claim: ResourceClaim, requirements: Requirements) -> Requirements | Reason:
    """Terms are alternatives, and a term on the node's name is met by that node alone (traps T7 and T8)."""
    allocation = claim.status.allocation
    selector = allocation.node_selector if allocation is not None else None
    if selector is None:
        return requirements
    if target.node_name:
        node_labels = labels_of(target.requirements)
        if any(term_holds(term, node_labels, target.node_name) for term in selector.node_selector_terms):
            return requirements
        return why.incompatible("in-cluster", claim.key, target, None)
    for term in selector.node_selector_terms:
        if term.match_fields or not term.match_expressions:
            continue
        narrowed = selector_requirements(NodeSelector((term,)))
        if len(narrowed) and requirements.compatible(narrowed, WELL_KNOWN):
            return requirements.merge(narrowed)
    return why.incompatible("in-cluster", claim.key, target, None)
