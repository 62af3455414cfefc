"""Properties of the simulation on small random problems."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karpenter_linode.model import codec
from karpenter_linode.model.core import Node, Pod
from karpenter_linode.model.instance_type import NANO_DOLLARS, InstanceType
from karpenter_linode.model.karpenter import NodePool
from karpenter_linode.scheduling import PlanTables, Problem, Solution, StateNode, solve
from karpenter_linode.scheduling import resources as res
from karpenter_linode.scheduling.placement import Placer

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
CAPACITY_TYPE, INSTANCE_TYPE = "karpenter.sh/capacity-type", "node.kubernetes.io/instance-type"
ZONES = ("z1", "z2", "z3")
CHECKED = settings(max_examples=60)


def one_of(key: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}


def plan(name: str, cpu: int, memory: int, price: int, zones: tuple[str, ...]) -> InstanceType:
    return codec.convert(
        {
            "name": name,
            "requirements": [one_of(INSTANCE_TYPE, name), one_of(ZONE, *zones), one_of(CAPACITY_TYPE, "on-demand")],
            "capacity": {"cpu": str(cpu), "memory": f"{memory}Gi", "pods": "8"},
            "offerings": [
                {
                    "price": price * NANO_DOLLARS,
                    "requirements": [one_of(ZONE, zone), one_of(CAPACITY_TYPE, "on-demand")],
                }
                for zone in zones
            ],
        },
        InstanceType,
    )


def rule(kind: str, app: str) -> dict[str, Any]:
    selector = {"matchLabels": {"app": app}}
    if kind.startswith("spread"):
        key = ZONE if kind == "spread-zone" else HOSTNAME
        constraint = {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
        return {"topologySpreadConstraints": [constraint]}
    if kind == "apart":
        required = {
            "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": HOSTNAME, "labelSelector": selector}]
        }
        return {"affinity": {"podAntiAffinity": required}}
    if kind == "zone":
        return {"nodeSelector": {ZONE: "z2"}}
    return {"tolerations": [{"key": "soft", "operator": "Exists"}]} if kind == "tolerant" else {}


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    kinds = ("plain", "plain", "plain", "spread-zone", "spread-host", "apart", "zone", "tolerant")
    pods = []
    for group in range(draw(st.integers(1, 4))):
        app = draw(st.sampled_from("xy"))
        requests = {
            "cpu": draw(st.sampled_from(("100m", "1", "2500m", "7"))),
            "memory": draw(st.sampled_from(("1Gi", "3Gi"))),
        }
        spec = {
            "containers": [{"name": "c", "resources": {"requests": requests}}],
            **rule(draw(st.sampled_from(kinds)), draw(st.sampled_from("xy"))),
        }
        for index in range(draw(st.integers(1, 7))):
            metadata = {
                "name": f"p{group}-{index}",
                "namespace": "default",
                "uid": f"u{group}-{index}",
                "labels": {"app": app},
            }
            pods.append(codec.convert({"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}, Pod))
    plans = tuple(
        plan(f"it-{index}", draw(st.sampled_from((2, 4, 8))), draw(st.sampled_from((4, 16))), index + 1, zones)
        for index, zones in enumerate(
            draw(st.lists(st.sampled_from((ZONES, ("z1",), ("z2", "z3"))), min_size=1, max_size=4))
        )
    )
    taints = draw(st.sampled_from(([], [{"key": "soft", "effect": "PreferNoSchedule"}])))
    limits = draw(st.sampled_from((None, {"cpu": "12"}, {"nodes": "3"})))
    spec = {
        "template": {"spec": {"nodeClassRef": {"group": "g", "kind": "K", "name": "n"}, "taints": taints}},
        **({"limits": limits} if limits else {}),
    }
    pools = (
        codec.convert({"metadata": {"name": "one"}, "spec": spec}, NodePool),
        codec.convert({"metadata": {"name": "two"}, "spec": {**spec, "weight": 5, "limits": {"cpu": "8"}}}, NodePool),
    )
    nodes = [
        {
            "metadata": {"name": f"n{index}", "labels": {ZONE: draw(st.sampled_from(ZONES))}},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "6"}},
        }
        for index in range(draw(st.integers(0, 3)))
    ]
    return Problem(
        pods=tuple(pods),
        node_pools=pools,
        instance_types={"one": plans, "two": plans},
        nodes=tuple(StateNode(codec.convert(node, Node)) for node in nodes),
    )


def cost(solution: Solution) -> int:
    return sum(claim.price for claim in solution.new_node_claims)


@given(problems())
@CHECKED
def test_every_pod_is_in_one_place_or_has_a_reason(problem: Problem) -> None:
    solution = solve(problem)
    seen = Counter(pod.name for claim in solution.new_node_claims for pod in claim.pods)
    seen.update(pod.name for item in solution.existing for pod in item.pods)
    seen.update(item.pod.name for item in solution.unplaced)
    assert seen == Counter(pod.name for pod in problem.pods)
    assert all(item.reason.message and item.reason.children for item in solution.unplaced)


@given(problems())
@CHECKED
def test_every_listed_plan_holds_the_pods_of_its_claim(problem: Problem) -> None:
    pods = {pod.name: pod for pod in problem.pods}
    plans = {item.name: item for item in problem.instance_types["one"]}
    for claim in solve(problem).new_node_claims:
        need = res.total(res.pod_requests(pods[pod.name]) for pod in claim.pods)
        for name in claim.instance_types:
            assert res.fits(need, res.from_resource_list(plans[name].capacity))


@given(problems(), st.randoms(use_true_random=False))
@CHECKED
def test_the_order_of_the_input_does_not_matter(problem: Problem, shuffler: Any) -> None:
    def shuffled(items: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(shuffler.sample(items, len(items)))

    plans = shuffled(problem.instance_types["one"])
    other = msgspec.structs.replace(
        problem,
        pods=shuffled(problem.pods),
        node_pools=shuffled(problem.node_pools),
        nodes=shuffled(problem.nodes),
        instance_types={"one": plans, "two": plans},
    )
    first, second = solve(problem), solve(other)
    assert cost(first) == cost(second)
    assert [item.pod for item in first.unplaced] == [item.pod for item in second.unplaced]
    assert first.existing == second.existing


@given(problems())
@CHECKED
def test_placing_many_at_once_equals_placing_one_by_one(problem: Problem) -> None:
    together = codec.encode(solve(problem))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Placer, "may_repeat", lambda *_: False)
        assert codec.encode(solve(problem)) == together


@given(problems())
@CHECKED
def test_a_problem_survives_being_written_down(problem: Problem) -> None:
    again = codec.decode(codec.encode(problem), Problem)
    assert codec.encode(solve(again)) == codec.encode(solve(problem))


@given(problems(), problems())
@CHECKED
def test_what_is_kept_of_the_plans_changes_no_answer(problem: Problem, other: Problem) -> None:
    tables = PlanTables()
    other = msgspec.structs.replace(other, instance_types=problem.instance_types)
    for item in (problem, other, problem):
        assert codec.encode(solve(item, tables)) == codec.encode(solve(item))
