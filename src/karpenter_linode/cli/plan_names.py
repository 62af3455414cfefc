"""Plans that NodePools and pods name: is there such a plan, and can a node be built from it here?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from karpenter_linode.cli.references import offer
from karpenter_linode.linode.instance_types import refused_plans, unavailable_plans
from karpenter_linode.linode.tables import bundled_availability
from karpenter_linode.model import labels
from karpenter_linode.model.core import Pod
from karpenter_linode.model.karpenter import NodePool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from karpenter_linode.cli.errors import Finding
    from karpenter_linode.cli.manifests import Loaded, Manifests
    from karpenter_linode.cli.offline import Market
    from karpenter_linode.cli.yaml_reader import Path


def plan_warnings(manifests: Manifests, market: Market) -> list[Finding]:
    """Plans named in the input that do not exist or that no node is built from in the market's region.

    Warnings, not errors: an account may sell plans that the bundled list does not know yet.

    Args:
        manifests: the objects.
        market: plans and region.
    """
    problems = _Problems(market)
    found = [
        loaded.finding(path, message)
        for loaded in manifests.objects
        for path, plan in _named(loaded)
        if (message := problems.of(plan))
    ]
    return list({(finding.place, finding.message): finding for finding in found}.values())  # replicas tell it once


class _Problems:
    """What is wrong with a plan, by its name."""

    def __init__(self, market: Market) -> None:
        self._known = sorted(plan.id for plan in market.types)
        unavailable = unavailable_plans(bundled_availability(market.region), market.region)
        self._problems = {
            **{plan: f"plan {plan} is not available in region {market.region}" for plan in unavailable},
            **{
                reason.subject.removeprefix("plan "): reason.message
                for reason in refused_plans(market.types, market.region)
            },
        }

    def of(self, plan: str) -> str:
        """One line, or "" for a plan that nodes can be built from."""
        if plan not in self._known:
            return f"found {plan!r}, but there is no plan of that name{offer(plan, self._known)}"
        problem = self._problems.get(plan)
        return f"no node is built from it: {problem}" if problem else ""


def _named(loaded: Loaded) -> Iterator[tuple[Path, str]]:
    """Plans that an object asks for, each with the path to its name."""
    obj = loaded.obj
    if isinstance(obj, NodePool):
        for index, item in enumerate(obj.spec.template.spec.requirements):
            if item.key == labels.INSTANCE_TYPE and item.operator == "In":
                at: Path = ("spec", "template", "spec", "requirements", index, "values")
                yield from (((*at, number), plan) for number, plan in enumerate(item.values))
    elif isinstance(obj, Pod) and labels.INSTANCE_TYPE in obj.spec.node_selector:
        yield ("spec", "nodeSelector", labels.INSTANCE_TYPE), obj.spec.node_selector[labels.INSTANCE_TYPE]
