"""Which plans can back a node of this cluster (spec/linode-provider.md 3.2); every refusal has its Reason."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from karpenter_linode.catalog.predict import MAX_GPUS
from karpenter_linode.model.instance_type import NANO_DOLLARS
from karpenter_linode.model.reason import Reason

if TYPE_CHECKING:
    from karpenter_linode.model.linode import LinodeType

STANDARD: Final = "standard"
ENTERPRISE: Final = "enterprise"

_EXCLUDED_CLASSES: Final = {
    "nanode": "Nanodes can't be LKE nodes",
    "metal": "bare metal plans can't be LKE nodes",
    "prodedicated": "prodedicated plans can't be LKE nodes",
}
_EXCLUDED_IDS: Final = (
    (re.compile(r"g1-gpu-.*rtx6000"), "Quadro RTX 6000 plans can't be deployed in LKE"),
    (re.compile(r".*(dedicated|nanode)-edge"), "edge plans can't be LKE nodes"),
)


class PlanFilter(Struct, frozen=True):
    """Exceptions from the built-in rules, so that a change of the platform needs no release.

    Args:
        allow: plan ids that are offered whatever the rules say, as long as they have a price.
        deny: plan ids that are never offered.
        enterprise_gpu: offer GPU plans on clusters of the enterprise tier too.
    """

    allow: frozenset[str] = frozenset()
    deny: frozenset[str] = frozenset()
    enterprise_gpu: bool = False


def hourly_price(plan: LinodeType, region: str) -> int | None:
    """Nano-dollars an hour in a region: the regional price if there is one, else the base price; None if not sold."""
    regional = next((price for price in plan.region_prices if price.id == region), None)
    hourly = plan.price.hourly if regional is None else regional.hourly
    return None if hourly is None else int((hourly * NANO_DOLLARS).to_integral_value(rounding="ROUND_HALF_UP"))


def refuse_plan(plan: LinodeType, region: str, tier: str, exceptions: PlanFilter) -> Reason | None:
    """Why a plan can't back a node of this cluster, or None where it can.

    Args:
        plan: the plan.
        region: the cluster's region.
        tier: ``standard`` or ``enterprise``.
        exceptions: what the operator allows and denies.
    """
    price = hourly_price(plan, region)
    if price is None:
        return _refusal(plan, "plan-price", f"plan {plan.id} has no hourly price in region {region}")
    if plan.vcpus <= 0 or plan.memory <= 0:
        return _refusal(plan, "plan-size", f"plan {plan.id} reports {plan.vcpus} vCPUs and {plan.memory} MiB of memory")
    if not 0 <= plan.gpus <= MAX_GPUS:
        return _refusal(plan, "plan-size", f"plan {plan.id} reports {plan.gpus} GPUs, expected 0 to {MAX_GPUS}")
    if plan.id in exceptions.deny:
        return _refusal(plan, "plan-denied", f"plan {plan.id} is on the deny list")
    if plan.id in exceptions.allow:
        return None
    if plan.class_ in _EXCLUDED_CLASSES:
        return _refusal(plan, "plan-class", f"plan {plan.id}: {_EXCLUDED_CLASSES[plan.class_]}")
    for pattern, why in _EXCLUDED_IDS:
        if pattern.match(plan.id):
            return _refusal(plan, "plan-id", f"plan {plan.id}: {why}")
    if plan.class_ == "gpu" and tier == ENTERPRISE and not exceptions.enterprise_gpu:
        return _refusal(plan, "plan-tier", f"plan {plan.id}: GPU plans are for LKE clusters of the standard tier")
    return None


def _refusal(plan: LinodeType, code: str, message: str) -> Reason:
    return Reason(code, message, subject=f"plan {plan.id}", facts=(("class", plan.class_),))


def dollars(nano_dollars: int) -> Decimal:
    """Nano-dollars as dollars, exact."""
    return Decimal(nano_dollars) / NANO_DOLLARS
