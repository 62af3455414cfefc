"""Why the plans that a new NodeClaim does not allow are out: the solver is asked again, with those plans alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from karpenter_linode.model.reason import Reason
from karpenter_linode.scheduling.left_out import EXCLUDED, excluded_names, not_offered
from karpenter_linode.scheduling.limits import over_limits
from karpenter_linode.scheduling.solver import solve
from karpenter_linode.scheduling.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from karpenter_linode.model.instance_type import InstanceType
    from karpenter_linode.scheduling.plans import PlanSet
    from karpenter_linode.scheduling.problem import PlannedNodeClaim, Problem, Solution
    from karpenter_linode.scheduling.template import Template

_EXPLAINED: Final = 20  # NodeClaims; more than anybody reads
_ROUNDS: Final = 8
_CROWDED_OUT: Final = "would do alone; what else was placed in this round rules it out"
_TOO_SMALL: Final = "cannot hold all {} pods of this NodeClaim at once"
# Refusals by the group of plans they exclude, and those of places that exist in the second solution only.
_OF_PLANS: Final = frozenset({"requirements", "offerings", "resources", "host-ports"})
_OF_THE_TRIAL: Final = frozenset({"existing-nodes", "planned-claims", "relaxation"})
_EXCLUDED_TEXT: Final = "excluded by the requirements of the NodePool"


def with_rejected(problem: Problem, solution: Solution) -> Solution:
    """The solution with the reasons of the plans that its first NodeClaims do not allow.

    The solver says which plans lack devices, and no more: reasons for all others would cost more than the decision. So
    each NodeClaim's pods are placed once more, on its NodePool with the remaining plans alone. A plan that would do by
    itself was ruled out by what else had to fit.

    Args:
        problem: what was asked.
        solution: what was answered.
    """
    world = World(replace(problem, pods=()))
    templates = {template.name: template for template in world.templates}
    explained: list[PlannedNodeClaim] = []
    for claim in solution.new_node_claims[:_EXPLAINED]:
        template = templates[claim.node_pool]
        # A claim was charged with the plans it had when it was opened; some may have dropped out since.
        limits = over_limits(template, exact=all(other.node_pool != claim.node_pool for other in explained))
        plans = world.plan_sets[claim.node_pool]
        explained.append(replace(claim, rejected=claim.rejected + _rejected(problem, claim, template, plans, limits)))
        template.charge_new(template.plans.named(claim.instance_types))
    return replace(solution, new_node_claims=(*explained, *solution.new_node_claims[_EXPLAINED:]))


def _rejected(
    problem: Problem, claim: PlannedNodeClaim, template: Template, plans: PlanSet, over: tuple[Reason, ...]
) -> tuple[Reason, ...]:
    uids = {(pod.namespace, pod.name) for pod in claim.pods}
    pods = tuple(pod for pod in problem.pods if (pod.namespace, pod.name) in uids)
    pool = tuple(pool for pool in problem.node_pools if pool.name == claim.node_pool)
    base = replace(problem, pods=pods, node_pools=pool, nodes=(), bound_pods=())
    known = {*claim.instance_types, *(reason.subject.removeprefix("plan ") for reason in claim.rejected)}
    left = [kind for kind in problem.instance_types.get(claim.node_pool, ()) if kind.name not in known]
    excluded = excluded_names(template.pool, plans)
    reasons = [Reason(EXCLUDED, _EXCLUDED_TEXT, subject=f"plan {kind.name}") for kind in left if kind.name in excluded]
    left = [kind for kind in left if kind.name not in excluded]
    reasons += not_offered(template.pool, plans)
    limits = {reason.subject.removeprefix("plan "): reason for reason in over}
    limited = [limits[kind.name] for kind in left if kind.name in limits]
    left = [kind for kind in left if kind.name in template.plans.by_name and kind.name not in limits]
    for _ in range(_ROUNDS):
        if not left or not pods:
            break
        answer = solve(replace(base, instance_types={claim.node_pool: tuple(left)}))
        if answer.unplaced:
            reasons += _about_plans(answer.unplaced[0].reason)
            break
        if len(answer.new_node_claims) != 1:  # a plan that holds all pods would have been given all of them
            text = _TOO_SMALL.format(len(pods))
            reasons += [Reason("plan-too-small", text, subject=f"plan {kind.name}") for kind in left]
            break
        able = set(answer.new_node_claims[0].instance_types)
        reasons += _by_surroundings(left, able)
        left = [kind for kind in left if kind.name not in able]
    return (*reasons, *limited)


def _about_plans(reason: Reason) -> Iterator[Reason]:
    """The parts of a pod's refusal that are about plans; what stands above them tells of a trial that never was."""
    if reason.code in _OF_PLANS or reason.subject.startswith("plan "):
        yield reason
    elif reason.code not in _OF_THE_TRIAL:
        for child in reason.children:
            yield from _about_plans(child)


def _by_surroundings(left: list[InstanceType], able: set[str]) -> list[Reason]:
    return [Reason("plan-crowded-out", _CROWDED_OUT, subject=f"plan {kind.name}") for kind in left if kind.name in able]
