"""Scenario files: what they mean, and what they are told when they mean nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from karpenter_linode.sim.faults import KubeCalls, LinodeSoldOut
from karpenter_linode.sim.scenario import Scenario, ScenarioError, Step, parse_scenario, play

Run = Callable[..., Any]
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}


def test_a_scenario_is_read() -> None:
    scenario = parse_scenario(
        {
            "duration": "1h",
            "podRuntime": "10m",
            "driver": {"publishing": "parts", "lateSeconds": 30},
            "delays": {"driverStart": [1, 2]},
            "steps": [
                {"at": "5m", "fault": {"kind": "linode-sold-out", "plan": "p", "region": "us-ord"}},
                {"apply": [MAP, "more.yaml"]},
                {"at": "90s", "delete": {"apiVersion": "v1", "kind": "ConfigMap", "name": "m"}},
                {"at": "90s", "fault": {"kind": "kube-calls", "verb": "patch", "status": 409}},
            ],
        },
        "scenario.yaml",
        read=lambda name: [{**MAP, "metadata": {"name": name.removesuffix(".yaml")}}],
    )
    assert scenario.limit == timedelta(hours=1)
    assert scenario.runtime == timedelta(minutes=10)
    assert scenario.driver.publishing == "parts"
    assert scenario.delays.driver_start == (1, 2)
    first, second, third, fourth = scenario.ordered
    assert [manifest["metadata"]["name"] for manifest in first.apply] == ["m", "more"]
    assert second.delete.name == "m"
    assert third.fault == KubeCalls(verb="patch", status=409)
    assert fourth.fault == LinodeSoldOut("p", "us-ord")


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        ({"duration": "soon"}, r"s\.yaml: duration: 'soon' is not a duration"),
        ({"podRuntime": 5}, r"s\.yaml: .*podRuntime"),
        ({"colour": "red"}, r"s\.yaml: .*colour"),
        ({"steps": [{"at": "1m"}]}, r"steps\[0\]: exactly one of apply, delete and fault"),
        ({"steps": [{"at": "x", "apply": [MAP]}]}, r"steps\[0\]\.at: 'x' is not a duration"),
        ({"steps": [{"at": "-1m", "apply": [MAP]}]}, r"steps\[0\]\.at: '-1m' lies in the past"),
        ({"steps": [{"apply": ["file.yaml"]}]}, r"steps\[0\]\.apply\[0\]: cannot read the file 'file\.yaml'"),
        ({"steps": [{"fault": {"kind": "meteor"}}]}, r"s\.yaml: .*meteor"),
        (
            {"steps": [{"fault": {"kind": "linode-calls", "method": "GET", "path": "/lke/("}}]},
            r"path '/lke/\(' is no regular expression",
        ),
        ({"steps": [{"fault": {"kind": "kube-watches", "effect": "cut"}}]}, r"cut"),
        ([], None),
        ("text", r"s\.yaml"),
    ],
)
def test_nonsense_is_named(plain: Any, message: str | None) -> None:
    if message is None:
        assert parse_scenario(plain, "s.yaml") == Scenario()
        return
    with pytest.raises(ScenarioError, match=message):
        parse_scenario(plain, "s.yaml")


def test_a_step_without_a_time_is_taken_at_the_start(run: Run) -> None:
    async def main(world: Any) -> None:
        await play(world, Scenario(steps=(Step(apply=(MAP,)),)))
        assert world.journal.entries[-1].subject == "ConfigMap default/m"
        assert world.clock.now() == world.journal.start

    run(main)


def test_steps_happen_at_their_times(run: Run) -> None:
    async def main(world: Any) -> None:
        scenario = parse_scenario(
            {
                "steps": [
                    {"at": "2m", "delete": {"apiVersion": "v1", "kind": "ConfigMap", "name": "m"}},
                    {"at": "1m", "apply": [MAP]},
                    {"at": "3m", "delete": {"apiVersion": "v1", "kind": "ConfigMap", "name": "m"}},
                ]
            },
            "s.yaml",
        )
        await play(world, scenario)
        told = [(world.journal.offset(e).total_seconds(), e.message) for e in world.journal.entries]
        assert told[:2] == [(60.0, "Created"), (120.0, "Deleted")]
        assert told[-1][0] == 180.0
        assert "Not deleted" in told[-1][1]

    run(main)
