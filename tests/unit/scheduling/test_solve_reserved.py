"""Reserved capacity (spec/karpenter-scheduling.md 2.11 and 8.15)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from karpenter_linode.model import codec
from karpenter_linode.scheduling import solve

ID = "example.com/reservation-id"
CAPACITY_TYPE, ZONE = "karpenter.sh/capacity-type", "topology.kubernetes.io/zone"
OPTIONS = {"reservation_id_label": ID, "well_known_labels": (ID,)}


def plan(make: Any, name: str, *reservations: tuple[str, int], cpu: str = "2") -> Any:
    def offering(price: int, kind: str, **more: Any) -> dict[str, Any]:
        requirements = [
            {"key": CAPACITY_TYPE, "operator": "In", "values": [kind]},
            {"key": ZONE, "operator": "In", "values": ["test-zone-1"]},
            *more.pop("extra", []),
        ]
        return {"price": price, "requirements": requirements, **more}

    held = [
        offering(1, "reserved", reservationCapacity=count, extra=[{"key": ID, "operator": "In", "values": [name_]}])
        for name_, count in reservations
    ]
    return make.plan(
        name,
        offerings=[offering(100, "on-demand"), *held],
        capacity={"cpu": cpu, "pods": "1"},
        capacity_types=("on-demand", "reserved"),
    )


def requirement(claim: Any, key: str) -> tuple[str, ...]:
    return next((item.values for item in claim.node_claim.spec.requirements if item.key == key), ())


def test_a_reservation_is_promised_once_and_the_next_pod_waits(make: Any) -> None:
    solution = make.solve([make.pod(), make.pod()], plans=[plan(make, "it", ("r", 1))], options=OPTIONS)
    (claim,) = solution.new_node_claims
    assert requirement(claim, CAPACITY_TYPE) == ("reserved",)
    assert requirement(claim, ID) == ("r",)
    (unplaced,) = solution.unplaced
    assert unplaced.reason.code == "reserved"


def test_fallback_goes_without(make: Any) -> None:
    options = {**OPTIONS, "reserved_offering_mode": "Fallback"}
    solution = make.solve([make.pod(), make.pod()], plans=[plan(make, "it", ("r", 1))], options=options)
    kinds = [requirement(claim, CAPACITY_TYPE) for claim in solution.new_node_claims]
    assert kinds == [("reserved",), ("on-demand", "reserved")]


def test_two_reservations_on_one_plan_are_both_held_for_one_claim(make: Any) -> None:
    plans = [plan(make, "it", ("r1", 1), ("r2", 2))]
    solution = make.solve([make.pod() for _ in range(3)], plans=plans, options=OPTIONS)
    assert [requirement(claim, ID) for claim in solution.new_node_claims] == [("r1", "r2"), ("r2",)]
    assert [item.reason.code for item in solution.unplaced] == ["reserved"]


def test_a_lower_pool_is_not_used_while_a_reservation_may_come_free(make: Any) -> None:
    pools = [make.pool("high", weight=9), make.pool("low")]
    solution = make.solve([make.pod(), make.pod()], pools, [plan(make, "it", ("r", 1))], options=OPTIONS)
    assert [claim.node_pool for claim in solution.new_node_claims] == ["high"]


def test_without_the_gate_nothing_is_reserved(make: Any) -> None:
    options = {**OPTIONS, "reserved_capacity": False}
    solution = make.solve([make.pod(), make.pod()], plans=[plan(make, "it", ("r", 1))], options=options)
    assert len(solution.new_node_claims) == 2
    assert requirement(solution.new_node_claims[0], ID) == ()


@pytest.mark.parametrize(("cpu", "claims"), [("500m", 1)])
def test_two_pods_fit_on_one_reserved_node(make: Any, cpu: str, claims: int) -> None:
    item = plan(make, "it", ("r", 1))
    plain = codec.to_plain(item)
    plain["capacity"]["pods"] = "9"
    roomy = codec.convert(plain, type(item))
    solution = make.solve([make.pod(requests={"cpu": cpu}) for _ in range(2)], plans=[roomy], options=OPTIONS)
    assert len(solution.new_node_claims) == claims
    assert solution.unplaced == ()


def spot_and_reserved(make: Any, name: str, price: int, reservation: str = "") -> Any:
    """A plan at a price, which a reservation may offer at 50."""
    plans = plan(make, name, *([(reservation, 1)] if reservation else []))
    cheap, *held = plans.offerings
    kept = [msgspec.structs.replace(item, price=50) for item in held]
    return msgspec.structs.replace(plans, offerings=(msgspec.structs.replace(cheap, price=price), *kept))


def test_a_claim_on_a_reservation_lists_the_reserved_plan_first_and_has_its_price(make: Any) -> None:
    plans = [spot_and_reserved(make, "cheap", 10), spot_and_reserved(make, "held", 90, "r")]
    (claim,) = make.solve([make.pod()], plans=plans, options=OPTIONS).new_node_claims
    assert claim.instance_types == ("held", "cheap")
    assert claim.price == 50


def test_one_reservation_that_two_pools_name_is_promised_once(make: Any) -> None:
    pools = [make.pool(zone) for zone in ("a", "b")]
    pods = [make.pod(nodeSelector={"karpenter.sh/nodepool": name}) for name in ("a", "b")]
    solution = make.solve(pods, pools, [plan(make, "it", ("r", 1))], options=OPTIONS)
    assert len(solution.new_node_claims) == 1
    assert [item.reason.code for item in solution.unplaced] == ["reserved"]


def test_reservations_of_two_pools_serve_a_pod_each(make: Any) -> None:
    pools = [make.pool(name) for name in ("a", "b")]
    pods = [make.pod(nodeSelector={"karpenter.sh/nodepool": name}) for name in ("a", "b")]
    types = {"a": (plan(make, "it", ("r1", 1)),), "b": (plan(make, "it", ("r2", 1)),)}
    problem = msgspec.structs.replace(make.problem(pods, pools, options=OPTIONS), instance_types=types)
    assert sorted(requirement(claim, ID) for claim in solve(problem).new_node_claims) == [("r1",), ("r2",)]


def test_waiting_for_a_reservation_gives_up_no_preference(make: Any) -> None:
    preference = {"matchExpressions": [{"key": "example.com/x", "operator": "DoesNotExist"}]}
    soft = {
        "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": preference}]}
    }
    pods = [make.pod(affinity=soft) for _ in range(2)]
    (unplaced,) = make.solve(pods, plans=[plan(make, "it", ("r", 1))], options=OPTIONS).unplaced
    assert "relaxation" not in {item.code for item in unplaced.reason.walk()}


def test_that_one_pool_waits_for_a_reservation_is_told_whatever_the_others_say(make: Any) -> None:
    tainted = make.pool("tainted", taints=[{"key": "t", "effect": "NoSchedule"}], weight=9)
    solution = make.solve(
        [make.pod(), make.pod()], [tainted, make.pool("low")], [plan(make, "it", ("r", 1))], options=OPTIONS
    )
    (unplaced,) = solution.unplaced
    assert unplaced.reason.code == "reserved"
    assert "one or more instance types with compatible reserved offerings are available, but could not be reserved" in (
        unplaced.reason.message
    )


def test_a_pod_that_would_cost_a_claim_its_reservation_does_not_join(make: Any) -> None:
    """The first claim could be bought on demand for both; what it was promised stays."""
    small, large = (
        codec.convert({**codec.to_plain(item), "capacity": {"cpu": cpu, "memory": "8Gi", "pods": "9"}}, type(item))
        for item, cpu in ((plan(make, "small", ("r", 1)), "2"), (plan(make, "large"), "8"))
    )
    pods = [make.pod(requests={"cpu": "1500m"}) for _ in range(2)]
    solution = make.solve(pods, plans=[small, large], options=OPTIONS)
    assert [requirement(claim, ID) for claim in solution.new_node_claims] == [("r",)]
    assert [len(claim.pods) for claim in solution.new_node_claims] == [1]
    fallback = make.solve(pods, plans=[small, large], options={**OPTIONS, "reserved_offering_mode": "Fallback"})
    assert [len(claim.pods) for claim in fallback.new_node_claims] == [2]
