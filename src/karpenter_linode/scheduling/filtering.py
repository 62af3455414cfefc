"""Why no plan of a pool takes a pod: the contract's twelve sentences, and which plan failed at what.

Source: spec/karpenter-scheduling.md 2.9. Built only for pods that end unplaced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from karpenter_linode.model import codec
from karpenter_linode.model.quantity import NANO
from karpenter_linode.model.reason import Reason
from karpenter_linode.model.requirements import meet
from karpenter_linode.model.wording import few
from karpenter_linode.scheduling import resources as res
from karpenter_linode.scheduling.left_out import counted_plans
from karpenter_linode.scheduling.plans import bits
from karpenter_linode.scheduling.ports import conflict

if TYPE_CHECKING:
    from karpenter_linode.scheduling.daemons import DaemonGroup
    from karpenter_linode.scheduling.resources import Resources
    from karpenter_linode.scheduling.shape import Shape
    from karpenter_linode.scheduling.template import ClaimState

_TYPO_CPU = 1_000_000 * NANO


class Findings(Struct, frozen=True):
    """What each plan of a mask passes.

    Args:
        mask: the plans that were looked at.
        compatible: their own requirements can hold.
        offered: an available offering meets the requirements.
        fitting: enough resources, and offered.
        blocked: left out because a daemon on them takes the pod's host port.
    """

    mask: int
    compatible: int
    offered: int
    fitting: int
    blocked: int

    @property
    def able(self) -> int:
        """Plans that pass everything."""
        return self.compatible & self.fitting


def examine(state: ClaimState, mask: int, shape: Shape, total: Resources) -> Findings:
    """Look at every plan of a mask.

    Args:
        state: requirements of the claim.
        mask: the plans to look at.
        shape: the pod.
        total: what the claim's pods ask for without it.
    """
    plans = state.template.plans
    blocked = fitting = 0
    for group in state.template.groups:
        if shape.ports and conflict(shape.ports, group.ports) is not None:
            blocked |= group.mask & mask
            continue
        need = res.add(res.add(total, shape.requests), group.overhead)
        fitting |= group.mask & plans.holding(need)
    seen = mask & ~blocked
    offered = state.market.mask & seen
    return Findings(mask, plans.meeting(state.requirements) & seen, offered, fitting & offered, blocked)


def refusal(state: ClaimState, found: Findings, shape: Shape) -> Reason:
    """The contract text and, below it, the plans that each rule excludes."""
    sentence = _sentence(found)
    text = f"{sentence}, requirements={state.requirements}, resources={_resources(state, shape)}"
    if sentence == "no instance type has enough resources" and shape.requests.get(res.CPU, 0) >= _TYPO_CPU:
        text += " (CPU request >= 1 Million, m vs M typo?)"
    return Reason("instance-types", text, children=exclusions(state, found, shape))


def exclusions(state: ClaimState, found: Findings, shape: Shape) -> tuple[Reason, ...]:
    """Which plans each rule excludes; a plan is listed under the first rule that excludes it.

    One that is bought in several ways is excluded once, by the rule that the best of them fails at.
    """
    plans = state.template.plans
    seen = found.mask & ~found.blocked
    able = plans.whole(found.able)
    misfits = found.compatible & found.offered & ~found.fitting & ~able
    unsold = found.compatible & ~found.offered & ~able & ~plans.whole(misfits)
    parts = (
        ("requirements", "do not meet the requirements", seen & ~found.compatible),
        ("offerings", "have no available offering that meets the requirements", unsold),
        ("resources", "are too small", misfits),
        ("host-ports", "run a daemon that takes the pod's host port", found.blocked),
    )
    return tuple(
        excluded(code, text, state, mask, _details(code, state, mask, shape)) for code, text, mask in parts if mask
    )


def excluded(code: str, text: str, state: ClaimState, mask: int, details: tuple[Reason, ...] = ()) -> Reason:
    """How many plans of a mask a rule excludes, with the cheapest of them."""
    names = state.template.plans.market(state.template.requirements).names(mask)
    return counted_plans(code, text, names, details)


def _sentence(found: Findings) -> str:
    compatible, fitting, offered = found.compatible, found.fitting, found.offered
    no = "no instance type "
    if not compatible and not fitting and not offered:
        return no + "met the scheduling requirements or had enough resources or had a required offering"
    if not compatible and not fitting:
        return no + "met the scheduling requirements or had enough resources"
    if not fitting and not offered:
        return no + "had enough resources or had a required offering"
    if not compatible:
        return no + "met all requirements"
    if not fitting:
        return no + "has enough resources"
    return no + "which had enough resources and the required offering met the scheduling requirements"


def _details(code: str, state: ClaimState, mask: int, shape: Shape) -> tuple[Reason, ...]:
    if code == "requirements":
        return _unmet(state, mask)
    return _shortfalls(state, mask, shape) if code == "resources" else ()


def _unmet(state: ClaimState, mask: int) -> tuple[Reason, ...]:
    """The requirements that plans of the mask do not meet, and what those plans have instead."""
    reasons = []
    for item in sorted(state.requirements, key=lambda item: item.key):
        others = [
            other
            for other, having in state.template.plans.values(item.key).items()
            if having & mask and not meet(item, other)
        ]
        if others:
            values = sorted({value for other in others if not other.complement for value in other.values})
            shown = few(values) or "none"
            reasons.append(Reason("requirement", f"{item}: plans have {shown}", facts=(("key", item.key),)))
    return tuple(reasons)


def _shortfalls(state: ClaimState, mask: int, shape: Shape) -> tuple[Reason, ...]:
    """For each resource that every plan of the mask lacks: the plan that comes nearest."""
    plans = state.template.plans
    nearest: dict[str, tuple[int, int, str]] = {}
    enough: set[str] = set()
    for position in bits(mask):
        plan = plans.plans[position]
        overhead = _group_of(state, position).overhead
        for name, asked in shape.items:
            need = asked + overhead.get(name, 0)
            have = plan.allocatable.get(name, 0)
            if need <= have:
                enough.add(name)
            elif name not in nearest or have > nearest[name][1]:
                nearest[name] = (need, have, plan.name)
    lacking = sorted(nearest.keys() - enough)
    if nearest and not lacking:  # each is met somewhere, but never all by one plan
        texts = ", ".join(f"{name} {_amount(name, nearest[name][0])}" for name in sorted(nearest))
        return (Reason("resource", f"no plan has all at once: {texts} needed with daemons"),)
    return tuple(_shortfall(name, *nearest[name]) for name in lacking)


def _shortfall(name: str, need: int, have: int, plan: str) -> Reason:
    needed, most = _amount(name, need), _amount(name, have)
    return Reason(
        "resource",
        f"{name}: {needed} needed with daemons, at most {most} on {plan}",
        facts=(("resource", name), ("needed", needed), ("most", most), ("plan", plan)),
    )


def _amount(name: str, amount: int) -> str:
    return str(res.to_resource_list({name: amount})[name])


def _group_of(state: ClaimState, position: int) -> DaemonGroup:
    return next(group for group in state.template.groups if group.mask >> position & 1)


def _resources(state: ClaimState, shape: Shape) -> str:
    sums = [res.add(shape.requests, group.overhead) for group in state.template.groups]
    texts = [_json(resources) for resources in sums]
    if len(set(texts)) <= 1:
        return texts[0] if texts else _json(shape.requests)
    least = most = sums[0]
    for item in sums[1:]:
        least = {name: min(amount, item[name]) for name, amount in least.items() if name in item}
        most = res.maximum(most, item)
    return f"min={_json(least)}, max={_json(most)}"


def _json(resources: Resources) -> str:
    return codec.encode(res.to_resource_list(resources)).decode()
