"""Every pod without a place is told why, down to the plans: each is accounted for below each NodePool."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import scheduling_refusals
from hypothesis import given, settings
from hypothesis import strategies as st

from karpenter_linode.scheduling import Problem, solve

if TYPE_CHECKING:
    from karpenter_linode.model.reason import Reason

TESTS = Path(__file__).parents[1]
ONE_PLAN = {"plan-not-offered", "plan-over-limits"}
# Refusals that come before any plan is looked at.
AT_ONCE = {"ignored", "dra-ignored", "claim-not-found", "volumes", "min-values-truncation", "dra-owns-gpus"}
CHECKED = settings(max_examples=150)


def load(path: str) -> Any:
    name = f"reasons_{Path(path).stem}"
    spec = importlib.util.spec_from_file_location(name, TESTS / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


make = load("unit/scheduling/conftest.py").Make()


def plans_told(reason: Reason) -> int:
    """How many plans a tree accounts for; what stands below a count is more about the same plans."""
    told = reason.fact("plans")
    if told is not None:
        return int(told)
    return 1 if reason.code in ONE_PLAN else sum(map(plans_told, reason.children))


def faults_of(problem: Problem, reason: Reason) -> list[str]:
    """What is wrong with the tree of a pod."""
    faults = [f"{item.code!r} says nothing" for item in reason.walk() if not item.code or not item.message]
    if reason.code in AT_ONCE and not reason.children:
        return faults
    usable = {pool.name for pool in problem.node_pools if pool.spec.replicas is None}
    told: dict[str, int] = {}
    for item in reason.walk():
        name = item.subject.removeprefix("NodePool ")
        if item.subject.startswith("NodePool ") and name in usable:
            told[name] = plans_told(item)
    listed = {name: len(problem.instance_types[name]) for name in usable}
    if told != listed:
        faults.append(f"plans told {told}, listed {listed}")
    if any(item.code == "undecided" for item in reason.walk()):
        faults.append("a rule is missing")
    return faults


@given(scheduling_refusals.problems(make))
@CHECKED
def test_below_each_node_pool_every_plan_is_accounted_for(problem: Problem) -> None:
    for item in solve(problem).unplaced:
        assert faults_of(problem, item.reason) == [], item.reason


@given(scheduling_refusals.problems(make), st.integers(0, 7))
@CHECKED
def test_where_a_pod_is_missing_no_other_is_left_out_without_the_rule_that_did_it(problem: Problem, gone: int) -> None:
    before = {item.pod.name for item in solve(problem).unplaced}
    rest = tuple(pod for index, pod in enumerate(problem.pods) if index != gone % len(problem.pods))
    for item in solve(msgspec.structs.replace(problem, pods=rest)).unplaced:
        if item.pod.name not in before:
            assert faults_of(problem, item.reason) == [], item.reason
            assert item.reason.code not in AT_ONCE, item.reason
