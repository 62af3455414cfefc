"""Which plans the limits of a NodePool keep out of a new NodeClaim (spec/karpenter-scheduling.md 2.10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.model import labels
from karpenter_linode.model.quantity import DECIMAL_SI, Quantity
from karpenter_linode.model.reason import Reason
from karpenter_linode.scheduling.plans import bits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from karpenter_linode.scheduling.plans import Plan
    from karpenter_linode.scheduling.template import Template

BREACH_CODE: Final = "plan-over-limits"
_BREACH: Final = "excluded because it would breach limits"
_WORDS: Final = ("limit", "left")


def node_limits_refusal(template: Template) -> Reason:
    """The contract text for a NodePool that may not have another node."""
    return Reason("node-limits", f"node limits have been exhausted for nodepool (NodePool={template.name})")


def limits_refusal(template: Template) -> Reason:
    """The contract text for a NodePool whose limits leave room for none of its plans, with the limits in question."""
    text = f"all available instance types exceed limits for nodepool (NodePool={template.name})"
    remaining = template.remaining or {}
    limits = template.pool.spec.limits or {}
    children = []
    for name in sorted(remaining):
        smallest = min(template.plans.plans, key=lambda plan: plan.capacity.get(name, 0))
        amount = smallest.capacity.get(name, 0)
        if amount > remaining[name]:
            left = Quantity(remaining[name], limits[name].notation)
            children.append(
                Reason(
                    "limit",
                    f"{name}: limit {limits[name]}, {left} left, "
                    f"the smallest plan {smallest.name} has {Quantity(amount, DECIMAL_SI)}",
                    facts=(("resource", name), ("limit", str(limits[name])), ("plan", smallest.name)),
                )
            )
    return Reason("limits", text, children=tuple(children))


def over_limits(template: Template, *, exact: bool = True) -> tuple[Reason, ...]:
    """A reason for each plan that is larger than what the limits leave now, in the order of the plans.

    Args:
        template: the NodePool, charged with what it has.
        exact: whether it is charged with all that it was charged with when the decision was taken, or with less.
    """
    plans = template.plans.plans
    outside = {plans[position].name: plans[position] for position in bits(template.over_limits())}
    return tuple(_breach(template, plan, "" if exact else "at most ") for plan in outside.values())


def _breach(template: Template, plan: Plan, bound: str) -> Reason:
    exceeded = list(_exceeded(template, plan))
    text = "; ".join(f"{name} limit {limit}, {bound}{left} left" for name, limit, left in exceeded)
    facts = tuple(
        (f"{name} {word}", value) for name, *rest in exceeded for word, value in zip(_WORDS, rest, strict=True)
    )
    return Reason(BREACH_CODE, f"{_BREACH}: {text}", subject=f"plan {plan.name}", facts=facts)


def _exceeded(template: Template, plan: Plan) -> Iterator[tuple[str, str, str]]:
    """The resources of which the plan has more than is left: name, limit, and what is left of it."""
    limits = template.pool.spec.limits or {}
    for name, left in sorted((template.remaining or {}).items()):
        if name != labels.NODES_RESOURCE and plan.capacity.get(name, 0) > left:
            yield name, str(limits[name]), str(Quantity(max(left, 0), limits[name].notation))
