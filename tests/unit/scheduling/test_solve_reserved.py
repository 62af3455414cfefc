"""Reserved capacity (spec/karpenter-scheduling.md 2.11 and 8.15)."""

from __future__ import annotations

from typing import Any

import pytest

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
    from karpenter_linode.model import codec  # noqa: PLC0415 - only here

    plain = codec.to_plain(item)
    plain["capacity"]["pods"] = "9"
    roomy = codec.convert(plain, type(item))
    solution = make.solve([make.pod(requests={"cpu": cpu}) for _ in range(2)], plans=[roomy], options=OPTIONS)
    assert len(solution.new_node_claims) == claims
    assert solution.unplaced == ()
