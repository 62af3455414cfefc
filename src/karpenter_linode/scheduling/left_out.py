"""Plans that a NodePool never offers, whatever the pod: excluded by its own requirements, or not to be bought now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.model.reason import Reason
from karpenter_linode.model.requirements import EMPTY
from karpenter_linode.model.wording import few
from karpenter_linode.scheduling.plans import bits
from karpenter_linode.scheduling.template import template_requirements

if TYPE_CHECKING:
    from karpenter_linode.model.karpenter import NodePool
    from karpenter_linode.scheduling.plans import PlanSet

PLANS: Final = "plans"  # the fact that says how many plans a rule excludes
EXCLUDED: Final = "nodepool-requirements"
NOT_OFFERED: Final = "plan-not-offered"
_TEXT: Final = "no available offering that meets the requirements of the NodePool"
TOO_FEW: Final = "would do, but are too few together"
_EXAMPLES: Final = 3


def left_out(pool: NodePool, plans: PlanSet) -> tuple[Reason, ...]:
    """Why plans of a pool are no choice for any pod; each plan is accounted for once.

    Args:
        pool: the NodePool.
        plans: everything that the cloud lists for it.
    """
    requirements = template_requirements(pool)
    meeting = plans.meeting(requirements)
    sold = meeting & plans.market(requirements).mask
    parts = (
        (EXCLUDED, "do not meet the requirements of the NodePool", plans.everything & ~meeting),
        ("overdrawn", "keep more for the system than they have", sold & ~plans.whole(plans.able(requirements))),
    )
    counted = tuple(counted_plans(code, text, plans.market(EMPTY).names(mask)) for code, text, mask in parts if mask)
    return (*counted, *not_offered(pool, plans))


def too_few(pool: NodePool, plans: PlanSet) -> Reason:
    """The plans of a pool that falls short of its own ``minValues``."""
    requirements = template_requirements(pool)
    names = plans.market(requirements).names(plans.able(requirements))
    return counted_plans("min-values", TOO_FEW, names)


def not_offered(pool: NodePool, plans: PlanSet) -> tuple[Reason, ...]:
    """A reason for each plan that a pool allows and that is sold out, or not available in the region."""
    requirements = template_requirements(pool)
    meeting = plans.meeting(requirements)
    unsold = meeting & ~plans.whole(meeting & plans.market(requirements).mask)
    names = dict.fromkeys(plans.names[position] for position in bits(unsold))
    return tuple(Reason(NOT_OFFERED, _TEXT, subject=f"plan {name}") for name in names)


def excluded_names(pool: NodePool, plans: PlanSet) -> set[str]:
    """Names of the plans that the requirements of a pool rule out from the start."""
    return plans.names_of(plans.everything & ~plans.meeting(template_requirements(pool)))


def counted_plans(code: str, text: str, names: list[str], details: tuple[Reason, ...] = ()) -> Reason:
    """How many plans a rule excludes.

    Args:
        code: the rule.
        text: what is said of the plans.
        names: the plans, cheapest first; each is accounted for by this reason.
        details: more about them.
    """
    message = f"{len(names)} plan(s) {text}: {few(names, _EXAMPLES)}"
    return Reason(code, message, facts=((PLANS, str(len(names))),), children=details)
