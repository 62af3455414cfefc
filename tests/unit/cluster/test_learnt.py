from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.cluster.learnt import LearntPlans
from karpenter_linode.cluster.state import ClusterState
from karpenter_linode.model import codec
from karpenter_linode.model.instance_type import InstanceType
from karpenter_linode.scheduling.resources import allocatable, from_resource_list, to_resource_list

PLAN = codec.convert(
    {"name": "a", "capacity": {"cpu": "4", "memory": "8Gi"}, "overhead": {"kubeReserved": {"cpu": "100m"}}},
    InstanceType,
)
PLANS = {"p": (PLAN,)}


@pytest.fixture
def seen(make: Any) -> Any:
    def build(*nodes: dict[str, str], node_class: str = "default") -> ClusterState:
        state = ClusterState()
        reference = {"group": "karpenter.k8s.linode", "kind": "LinodeNodeClass", "name": node_class}
        for number, reported in enumerate(nodes):
            ident = f"linode://{number}"
            state.observe(
                make(
                    "NodeClaim",
                    f"c{number}",
                    metadata={"labels": {"node.kubernetes.io/instance-type": "a"}},
                    spec={"nodeClassRef": reference},
                    status={"providerID": ident, "allocatable": {"cpu": "3900m", "memory": "8Gi"}},
                )
            )
            state.observe(
                make("Node", f"n{number}", spec={"providerID": ident}, status={"allocatable": reported}),
            )
        return state

    return build


@pytest.fixture
def pool(make: Any) -> Any:
    reference = {"group": "karpenter.k8s.linode", "kind": "LinodeNodeClass", "name": "default"}
    return make("NodePool", "p", spec={"template": {"spec": {"nodeClassRef": reference, "requirements": []}}})


def room(plans: dict[str, tuple[InstanceType, ...]]) -> dict[str, str]:
    return {name: str(amount) for name, amount in to_resource_list(allocatable(plans["p"][0])).items()}


def test_the_least_that_a_node_reported_counts_even_when_the_node_is_gone(seen: Any, pool: Any) -> None:
    learnt = LearntPlans()
    learnt.learn(seen({"cpu": "3900m", "memory": "7Gi"}, {"cpu": "3800m", "memory": "7500Mi"}))
    learnt.learn(seen())
    assert room(learnt.adjusted(PLANS, [pool])) == {"cpu": "3800m", "memory": "7Gi"}


@pytest.mark.parametrize("reported", [{}, {"cpu": "0", "memory": "0"}, {"cpu": "4", "memory": "9Gi"}])
def test_a_node_that_says_nothing_or_has_more_changes_nothing(seen: Any, pool: Any, reported: dict[str, str]) -> None:
    learnt = LearntPlans()
    learnt.learn(seen(reported))
    assert learnt.adjusted(PLANS, [pool])["p"] is PLANS["p"]


def test_another_node_class_has_other_nodes(seen: Any, pool: Any) -> None:
    learnt = LearntPlans()
    learnt.learn(seen({"memory": "7Gi"}, node_class="other"))
    assert learnt.adjusted(PLANS, [pool])["p"] is PLANS["p"]


def test_plans_stay_the_same_objects_until_something_new_is_known(seen: Any, pool: Any) -> None:
    learnt = LearntPlans()
    learnt.learn(seen({"memory": "7Gi"}))
    first = learnt.adjusted(PLANS, [pool])["p"]
    learnt.learn(seen({"memory": "7Gi"}))
    assert learnt.adjusted(PLANS, [pool])["p"] is first
    learnt.learn(seen({"memory": "6Gi"}))
    assert room(learnt.adjusted(PLANS, [pool]))["memory"] == "6Gi"


def test_what_a_plan_keeps_already_is_not_taken_twice(seen: Any, pool: Any) -> None:
    learnt = LearntPlans()
    learnt.learn(seen({"cpu": "3900m", "memory": "7Gi"}))
    plan = learnt.adjusted(PLANS, [pool])["p"][0]
    assert from_resource_list(plan.overhead.kube_reserved)["cpu"] == 10**8
