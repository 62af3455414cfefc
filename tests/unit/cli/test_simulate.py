"""``simulate``: the example from a pending pod to an empty account."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Command = Callable[..., Any]


def test_the_example_ends_with_a_finished_pod_and_nothing_billed(command: Command) -> None:
    result = command("simulate", "examples/one-gpu", "--seed", "7", "-o", "json")
    assert result.code == 0
    data = result.data
    assert data["succeeded"] is True
    assert data["quiet"] is True
    assert [(pod["pod"], pod["phase"]) for pod in data["pods"]] == [("default/gpu-job", "Succeeded")]
    (claim,) = data["nodeClaims"]
    assert (claim["instanceType"], claim["pricePerHour"]) == ("g2-gpu-rtx4000a1-s", "0.52")
    assert claim["deleted"] > claim["initialized"]
    (device,) = data["devices"]
    assert device["device"] == "gpu-0"
    assert device["pods"] == ["default/gpu-job"]
    assert "left" not in data, "an empty list is left out"
    assert data["cost"] == "1.04", "the pod runs for an hour, and started hours count"
    assert [line["cost"] for line in data["bill"]] == ["1.04"]


def test_the_same_seed_gives_the_same_bytes_and_another_seed_does_not(command: Command) -> None:
    first, second, other = (
        command("simulate", "examples/one-gpu", "--seed", seed, "-o", "json").out for seed in ("7", "7", "8")
    )
    assert first == second
    assert first != other


def test_the_story_is_told_and_can_be_left_out(command: Command) -> None:
    told = command("simulate", "examples/one-gpu", "--pod-runtime", "5m")
    assert "Pod default/gpu-job: Pod is Running" in told.out
    assert "nothing left billed" in told.out.splitlines()[-1]
    assert "ignores them by default" in told.err
    quiet = command("simulate", "examples/one-gpu", "--pod-runtime", "5m", "--quiet")
    assert "Pod is Running" not in quiet.out
    assert quiet.out.splitlines()[-1] == told.out.splitlines()[-1]


def test_a_pod_that_finds_no_plan_is_explained_and_ends_with_one(command: Command) -> None:
    result = command("simulate", "examples/two-gpus", "--duration", "10m", "--quiet")
    assert result.code == 1
    assert "no instance type can satisfy the allocation" in result.out
    assert "0 nodes built" in result.out.splitlines()[-1]


def test_ignoring_claims_builds_nothing(command: Command) -> None:
    result = command("simulate", "examples/one-gpu", "--ignore-dra-requests", "--duration", "10m", "-o", "json")
    assert result.code == 1
    assert "nodeClaims" not in result.data


def test_a_scenario_changes_what_happens(command: Command) -> None:
    result = command(
        "simulate", "examples/any-plan", "--scenario", "examples/scenarios/sold-out.yaml", "--seed", "1", "-o", "json"
    )
    assert result.code == 0
    ran = next(claim for claim in result.data["nodeClaims"] if claim.get("initialized"))
    assert ran["instanceType"] == "g2-gpu-rtx4000a1-m", "the next cheapest, since the cheapest is sold out"


def test_a_missing_node_class_is_assumed_and_said(command: Command, tmp_path: Path) -> None:
    files = [f"examples/one-gpu/{name}.yaml" for name in ("nodepool", "deviceclass", "template", "pod")]
    result = command("simulate", *files, "--pod-runtime", "1m", "-o", "json")
    assert result.code == 0
    assert any("an empty one is assumed" in note for note in result.data["assumptions"])


def test_objects_that_only_a_running_world_makes_are_left_out(command: Command, tmp_path: Path) -> None:
    (tmp_path / "node.yaml").write_text("apiVersion: v1\nkind: Node\nmetadata: {name: old}\n")
    result = command("simulate", "examples/one-gpu", str(tmp_path), "--pod-runtime", "1m", "-o", "json")
    assert result.code == 0
    assert any("the world begins empty: 1 " in note for note in result.data["assumptions"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Missing argument"),
        (("examples/one-gpu", "--duration", "soon"), "'soon' is not a duration"),
        (("examples/one-gpu", "--duration", "0s"), "not longer than nothing"),
        (("examples/one-gpu", "--seed", "x"), "'x' is not a valid integer"),
        (("examples/broken/unknown-class",), "there is no DeviceClass of that name"),
        (("examples/one-gpu", "--scenario", "missing.yaml"), "no such file"),
        (("examples/one-gpu", "--scenario", "examples/one-gpu/pod.yaml"), "apiVersion"),
    ],
)
def test_bad_usage_ends_with_two(command: Command, arguments: tuple[str, ...], message: str) -> None:
    result = command("simulate", *arguments)
    assert result.code == 2
    assert message in result.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("podRuntim: 3m\n", ":1:1: document 1, podRuntim: unknown field; is 'podRuntime' meant?"),
        (
            "steps:\n  - fault: {kind: linode-soldout, plan: x}\n",
            (
                ":2:19: document 1, steps[0].fault.kind: found 'linode-soldout', but there is no fault of that kind; "
                "is 'linode-sold-out' meant?"
            ),
        ),
        (
            "steps:\n  - fault: {kind: node-stop, nod: x, node: y}\n",
            ":2:30: document 1, steps[0].fault.nod: unknown field; is 'node' meant?",
        ),
        (
            "steps:\n  - at: 1m\n    delete: {apiVersion: v1, kind: Pod, nam: x, name: y}\n",
            ":3:41: document 1, steps[0].delete.nam: unknown field; is 'name' meant?",
        ),
        (
            "steps:\n  - fault: {kind: linode-sold-out, plan: g6-dedicated-44, region: us-ord}\n",
            (
                ":2:42: document 1, steps[0].fault.plan: found 'g6-dedicated-44', but there is no plan of that name; "
                "is 'g6-dedicated-4' meant?"
            ),
        ),
        ("steps:\n  - at: soon\n    apply: [x.yaml]\n", ":2:9: document 1, steps[0].at: 'soon' is not a duration"),
        ("driver: {lateSecond: 1}\n", ":1:10: document 1, driver.lateSecond: unknown field; is 'lateSeconds' meant?"),
    ],
)
def test_a_mistake_in_a_scenario_is_found_where_it_stands(
    command: Command, tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(text)
    result = command("simulate", "examples/one-gpu", "--scenario", str(file))
    assert result.code == 2
    assert f"error: {file}{message}" in result.err


def test_pods_of_a_scenario_run_as_long_as_without_one_unless_it_says_so(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text("steps: []\n")
    plain = command("simulate", "examples/one-gpu", "-o", "json").data
    assert command("simulate", "examples/one-gpu", "--scenario", str(file), "-o", "json").data == plain
    file.write_text("podRuntime: forever\n")
    endless = command("simulate", "examples/one-gpu", "--scenario", str(file), "--duration", "90m", "-o", "json").data
    assert endless["pods"][0]["phase"] == "Running"


def test_what_is_not_there_is_not_told_to_be_deleted(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text("podRuntime: 1m\nsteps: [{at: 30s, delete: {apiVersion: v1, kind: Pod, name: nope}}]\n")
    told = [
        line
        for line in command("simulate", "examples/one-gpu", "--scenario", str(file)).out.splitlines()
        if "nope" in line
    ]
    assert len(told) == 1
    assert 'Not deleted: pods "nope" not found' in told[0]


def test_story_and_tables_tell_the_same_times(command: Command) -> None:
    out = command("simulate", "examples/one-gpu", "--seed", "7").out
    (created,) = [line for line in out.splitlines() if "created nodeclaim" in line]
    (row,) = [line for line in out.splitlines() if line.startswith("gpu-") and "$0.52" in line]
    assert created.split()[0] == row.split()[3]
