"""Offerings that leave another amount than their instance type says (spec/karpenter-scheduling.md 5.3)."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.model import codec
from karpenter_linode.model.instance_type import InstanceType
from karpenter_linode.scheduling import resources as res
from karpenter_linode.scheduling.plan_choice import PlanChooser

ZONE, CAPACITY_TYPE = "topology.kubernetes.io/zone", "karpenter.sh/capacity-type"
SLOT = "fake.com/slot"


def offering(zone: str, price: int, kind: str = "on-demand", **given: Any) -> dict[str, Any]:
    requirements = [
        {"key": ZONE, "operator": "In", "values": [zone]},
        {"key": CAPACITY_TYPE, "operator": "In", "values": [kind]},
    ]
    return {"price": price, "requirements": requirements, **given}


def with_slots(make: Any, **given: Any) -> InstanceType:
    """A plan of which only what is bought in zone 2 has slots."""
    slotted = offering("test-zone-2", 2, capacityOverride={SLOT: "2"}, **given)
    plan: InstanceType = make.plan("it", offerings=[offering("test-zone-1", 1), slotted])
    return plan


def amounts(instance_type: InstanceType, index: int | None = None) -> dict[str, str]:
    bought = instance_type.offerings[index] if index is not None else None
    return {name: str(amount) for name, amount in res.to_resource_list(res.allocatable(instance_type, bought)).items()}


def test_overrides_replace_by_resource() -> None:
    kind = codec.convert(
        {
            "name": "it",
            "capacity": {"cpu": "4", "memory": "16Gi"},
            "overhead": {"kubeReserved": {"memory": "512Mi", "cpu": "100m"}, "evictionThreshold": {"memory": "512Mi"}},
            "offerings": [
                offering("a", 1),
                offering("a", 1, capacityOverride={SLOT: "12"}, overheadOverride={"systemReserved": {"memory": "3Gi"}}),
            ],
        },
        InstanceType,
    )
    assert amounts(kind) == amounts(kind, 0) == {"cpu": "3900m", "memory": "15Gi"}
    assert amounts(kind, 1) == {"cpu": "3900m", "memory": "13Gi", SLOT: "12"}


def test_huge_pages_of_an_override_are_taken_from_memory_and_never_more_than_there_is() -> None:
    kind = codec.convert(
        {
            "name": "it",
            "capacity": {"memory": "4Gi", "hugepages-2Mi": "1Gi"},
            "offerings": [offering("a", 1, capacityOverride={"hugepages-2Mi": "9Gi"})],
        },
        InstanceType,
    )
    assert amounts(kind)["memory"] == "3Gi"
    assert amounts(kind, 0)["memory"] == "0"


def test_a_plan_is_used_through_the_offering_that_has_the_resource(make: Any) -> None:
    solution = make.solve([make.pod(requests={SLOT: "1"})], plans=[with_slots(make), make.plan("plain")])
    (claim,) = solution.new_node_claims
    assert (claim.instance_types, claim.price) == (("it",), 2)


def test_an_offering_that_is_not_available_lends_nothing(make: Any) -> None:
    solution = make.solve([make.pod(requests={SLOT: "1"})], plans=[with_slots(make, available=False)])
    (unplaced,) = solution.unplaced
    assert unplaced.reason.message.startswith("no instance type has enough resources")


def test_what_is_small_enough_takes_the_cheapest_way_and_lists_the_plan_once(make: Any) -> None:
    (claim,) = make.solve([make.pod()], plans=[with_slots(make)]).new_node_claims
    assert (claim.instance_types, claim.price) == (("it",), 1)


def test_slots_are_filled_like_any_other_resource(make: Any) -> None:
    pods = [make.pod(requests={SLOT: "1"}) for _ in range(3)]
    solution = make.solve(pods, plans=[with_slots(make)])
    assert sorted(len(claim.pods) for claim in solution.new_node_claims) == [1, 2]


def test_requirements_choose_the_way_to_buy(make: Any) -> None:
    pod = make.pod(requests={SLOT: "1"}, nodeSelector={ZONE: "test-zone-1"})
    (unplaced,) = make.solve([pod], plans=[with_slots(make)]).unplaced
    assert unplaced.reason.message.startswith("no instance type has enough resources")
    (rule,) = [item for item in unplaced.reason.walk() if item.fact("plans")]
    assert (rule.code, rule.fact("plans")) == ("resources", "1")


def test_the_launch_buys_the_offering_that_holds_the_pods(make: Any) -> None:
    kind = with_slots(make)
    (claim,) = make.solve([make.pod(requests={SLOT: "1"})], plans=[kind]).new_node_claims
    choice = PlanChooser([kind]).cheapest(claim.node_claim)
    assert choice.offering is kind.offerings[1]


@pytest.mark.parametrize("taken", [0, 1])
def test_devices_are_given_back_only_when_no_way_to_buy_the_plan_is_left(make: Any, taken: int) -> None:
    plain = codec.to_plain(make.plan("it", capacity_types=("on-demand",), devices=2))
    slotted = offering("test-zone-2", 2, capacityOverride={SLOT: "2"})
    kind = codec.convert({**plain, "offerings": [*plain["offerings"], slotted]}, InstanceType)
    toleration = [{"operator": "Exists"}]
    pods = [
        make.claim_pod("a", tolerations=toleration, requests={"cpu": "1"}),
        make.claim_pod("b", tolerations=toleration, requests={SLOT: str(taken)} if taken else {}),
    ]
    solution = make.solve(
        pods,
        plans=[kind],
        resource_claims=[make.claim("a"), make.claim("b")],
        device_classes=[make.gpu_class()],
        options={"ignore_dra_requests": False},
    )
    (claim,) = solution.new_node_claims
    assert (claim.instance_types, len(claim.pods), len(solution.claims)) == (("it",), 2, 2)
