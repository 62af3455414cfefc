"""Why no plan of a pool takes a pod: the contract's twelve sentences, and which plan failed at what.

Source: spec/karpenter-scheduling.md 2.9. Built only for pods that end unplaced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from karpenter_linode.model import codec
from karpenter_linode.model.quantity import NANO
from karpenter_linode.model.reason import Reason
from karpenter_linode.scheduling import resources as res
from karpenter_linode.scheduling.plans import bits
from karpenter_linode.scheduling.ports import conflict

if TYPE_CHECKING:
    from karpenter_linode.scheduling.daemons import DaemonGroup
    from karpenter_linode.scheduling.resources import Resources
    from karpenter_linode.scheduling.shape import Shape
    from karpenter_linode.scheduling.template import ClaimState

_TYPO_CPU = 1_000_000 * NANO
_EXAMPLES = 3


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
    """Which plans each rule excludes; a plan is listed under the first rule that excludes it."""
    seen = found.mask & ~found.blocked
    misfits = found.compatible & found.offered & ~found.fitting
    parts = (
        ("requirements", "do not meet the requirements", seen & ~found.compatible),
        ("offerings", "have no available offering that meets the requirements", found.compatible & ~found.offered),
        ("resources", "are too small", misfits),
        ("host-ports", "run a daemon that takes the pod's host port", found.blocked),
    )
    return tuple(
        Reason(
            code,
            f"{mask.bit_count()} plan(s) {text}: {_examples(state, mask)}",
            facts=(("plans", str(mask.bit_count())),),
            children=_shortfalls(state, mask, shape) if code == "resources" else (),
        )
        for code, text, mask in parts
        if mask
    )


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


def _examples(state: ClaimState, mask: int) -> str:
    plans = state.template.plans
    names = [plans.names[position] for position in plans.market(state.template.requirements).order(mask)]
    more = f" and {len(names) - _EXAMPLES} other(s)" if len(names) > _EXAMPLES else ""
    return ", ".join(names[:_EXAMPLES]) + more


def _shortfalls(state: ClaimState, mask: int, shape: Shape) -> tuple[Reason, ...]:
    """For each resource that some plan lacks: the plan that comes nearest."""
    plans = state.template.plans
    lacking: dict[str, tuple[int, int, str]] = {}
    for position in bits(mask):
        plan = plans.plans[position]
        overhead = _group_of(state, position).overhead
        for name, asked in shape.items:
            need = asked + overhead.get(name, 0)
            have = plan.allocatable.get(name, 0)
            if need > have and (name not in lacking or have > lacking[name][1]):
                lacking[name] = (need, have, plan.name)
    reasons = []
    for name in sorted(lacking):
        need, have, plan_name = lacking[name]
        texts = {key: str(value) for key, value in res.to_resource_list({name: need}).items()}
        most = str(res.to_resource_list({name: have})[name])
        reasons.append(
            Reason(
                "resource",
                f"{name}: {texts[name]} needed with daemons, at most {most} on {plan_name}",
                facts=(("resource", name), ("needed", texts[name]), ("most", most), ("plan", plan_name)),
            )
        )
    return tuple(reasons)


def _group_of(state: ClaimState, position: int) -> DaemonGroup:
    return next(group for group in state.template.groups if group.mask >> position & 1)


def _resources(state: ClaimState, shape: Shape) -> str:
    sums = [res.add(shape.requests, group.overhead) for group in state.template.groups]
    texts = [_json(resources) for resources in sums]
    if len(set(texts)) <= 1:
        return texts[0] if texts else _json(shape.requests)
    least = most = sums[0]
    for item in sums[1:]:
        least = {name: min(amount, item.get(name, 0)) for name, amount in least.items()}
        most = res.maximum(most, item)
    return f"min={_json(least)}, max={_json(most)}"


def _json(resources: Resources) -> str:
    return codec.encode(res.to_resource_list(resources)).decode()
