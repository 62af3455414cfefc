"""The simulation in parts, and what pods give up on the way."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.scheduling import Simulation, solve

PREFERRED = [
    {"weight": weight, "preference": {"matchExpressions": [{"key": "team", "operator": "In", "values": [team]}]}}
    for weight, team in ((1, "a"), (9, "b"))
]
AFFINITY = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": PREFERRED}}


def test_what_a_placed_pod_gave_up_is_kept_in_order(make: Any) -> None:
    simulation = Simulation(make.problem([make.pod("a", affinity=AFFINITY), make.pod("b")]))
    simulation.run()
    given_up = [(pod.name, text) for pod, text in simulation.relaxed()]
    assert [name for name, _ in given_up] == ["a", "a"]
    what = "removing: spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]="
    assert all(text.startswith(what) for _, text in given_up)
    assert ['"b"' in text for _, text in given_up] == [True, False]


def test_a_pod_that_finds_no_place_has_given_up_nothing(make: Any) -> None:
    simulation = Simulation(make.problem([make.pod(affinity=AFFINITY, requests={"cpu": "1000"})]))
    assert simulation.run().unplaced
    assert list(simulation.relaxed()) == []


def test_pods_wait_until_they_had_their_turn_and_parts_make_the_same_whole(make: Any) -> None:
    problem = make.problem(make.pod(requests={"cpu": f"{number}00m"}) for number in range(1, 9))
    simulation = Simulation(problem)
    waiting = [simulation.waiting]
    waiting += [simulation.waiting for _ in simulation.turns()]
    assert waiting[:9] == [8, 7, 6, 5, 4, 3, 2, 1, 0]
    assert simulation.solution == solve(problem)


def test_a_simulation_that_is_cut_at_once_places_nothing(make: Any) -> None:
    simulation = Simulation(make.problem([make.pod("a"), make.pod("b")]))
    simulation.cut()
    solution = simulation.run()
    assert [item.reason.code for item in solution.unplaced] == ["out-of-time"] * 2
    assert solution.new_node_claims == ()


@pytest.mark.parametrize(("cpu", "excluded"), [("1000", []), ("8", [("default", 3, 4)]), ("17", [("default", 1, 4)])])
def test_plans_that_the_limits_keep_out_are_counted(make: Any, cpu: str, excluded: list[Any]) -> None:
    pool = make.pool(limits={"cpu": cpu})
    simulation = Simulation(make.problem([make.pod(requests={"cpu": "1"})], [pool], make.sized_plans(2, 16, 17, 32)))
    assert list(simulation.over_limits()) == excluded
