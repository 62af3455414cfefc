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
    assert (claim["instanceType"], claim["price"]) == ("g2-gpu-rtx4000a1-s", 520_000_000)
    assert claim["deleted"] > claim["initialized"]
    (device,) = data["devices"]
    assert device["device"] == "gpu-0"
    assert device["pods"] == ["default/gpu-job"]
    assert "left" not in data, "an empty list is left out"
    assert data["nanoDollars"] == 2 * 520_000_000, "the pod runs for an hour, and started hours count"


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
