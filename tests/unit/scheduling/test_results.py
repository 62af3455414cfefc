from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.scheduling.results import non_pending_errors, non_pending_unplaced
from karpenter_linode.scheduling.solver import Simulation

ZONE = "topology.kubernetes.io/zone"


def test_pods_that_were_pending_anyway_do_not_count(make: Any) -> None:
    pods = [make.pod(requests={"cpu": "999"}) for _ in range(2)]
    solution = make.solve(pods)
    assert len(non_pending_unplaced(solution, {pods[0].uid})) == 1
    assert non_pending_errors(solution, {pod.uid for pod in pods}) == "No Pod Scheduling Errors"


def test_at_most_five_are_named(make: Any) -> None:
    solution = make.solve([make.pod(f"p{index}", requests={"cpu": "999"}) for index in range(7)])
    text = non_pending_errors(solution, ())
    assert text.startswith("not all pods would schedule, default/p0 => no instance type has enough resources")
    assert text.endswith(" and 2 other(s)")


def selector(key: str, *values: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": required}}


def spread(*values: str) -> dict[str, Any]:
    constraint = {
        "topologyKey": ZONE,
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    return {
        "labels": {"app": "x"},
        "topologySpreadConstraints": [constraint],
        **(selector(ZONE, *values) if values else {}),
    }


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        ({}, "flexible"),
        ({"nodeSelector": {ZONE: "test-zone-1"}}, "test-zone-1"),
        (selector(ZONE, "test-zone-1", "test-zone-2"), "flexible"),
        (spread(), "flexible"),
        (spread("test-zone-3"), "test-zone-3"),
        (spread("nowhere"), "none"),
    ],
)
def test_effective_zones(make: Any, pod: dict[str, Any], expected: str) -> None:
    assert Simulation(make.problem([make.pod(**pod), make.pod(**pod)])).pending_by_zone() == {expected: 2}


def test_running_pods_have_no_effective_zone(make: Any) -> None:
    assert Simulation(make.problem([make.running("n")])).pending_by_zone() == {}
