"""``cel``: a selector on predicted devices and on slices, its parts, its cost, and what is wrong with it."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from syrupy.assertion import SnapshotAssertion

    Command = Callable[..., Any]

A1_S, A2_S, BLACKWELL = "g2-gpu-rtx4000a1-s", "g2-gpu-rtx4000a2-s", "g3-gpu-rtxpro6000-blackwell-1"
IS_GPU = "device.driver == 'gpu.nvidia.com'"
MEMORY = "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('24Gi')) >= 0"
UUID = "device.attributes['gpu.nvidia.com'].uuid == 'x'"


def gpu(name: str, **attributes: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "attributes": attributes, "capacity": {"memory": {"value": "20475Mi"}}}


def resource_slice(name: str, *devices: dict[str, Any], generation: int = 1, count: int = 1) -> dict[str, Any]:
    pool = {"name": "node-1", "generation": generation, "resourceSliceCount": count}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {"driver": "gpu.nvidia.com", "nodeName": "node-1", "pool": pool, "devices": list(devices)},
    }


def saved(folder: Path, *objects: dict[str, Any]) -> str:
    file = folder / "slices.yaml"
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    return str(file)


def outcomes(result: Any) -> dict[str, str]:
    return {f"{item.get('plan') or item['slice']}/{item['device']}": item["outcome"] for item in result.data["devices"]}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("every plan", [f"{IS_GPU} && 'memory' in device.capacity['gpu.nvidia.com'] && {MEMORY}"]),
        ("one plan", ["--plan", A2_S, f"{IS_GPU} && {MEMORY}"]),
        ("what is not predicted", ["--plan", A1_S, f"{IS_GPU} && {UUID}"]),
        ("does not compile", ["device.attributes['gpu.nvidia.com'.type == 'gpu'"]),
    ],
)
def test_what_people_read(command: Command, name: str, arguments: list[str], snapshot: SnapshotAssertion) -> None:
    result = command("cel", *arguments)
    assert f"exit {result.code}\n{result.out}--\n{result.err}" == snapshot


def test_each_part_is_told_with_its_value_and_cost(command: Command) -> None:
    result = command("cel", "--plan", A1_S, f"{IS_GPU} && {MEMORY}", "-o", "json")
    assert result.code == 1
    assert result.data["matches"] == 0
    assert result.data["costLimit"] == 1_000_000
    (device,) = result.data["devices"]
    assert (device["plan"], device["device"], device["outcome"], device["cost"]) == (A1_S, "gpu-0", "no_match", 11)
    assert [(part["depth"], part["text"], part["value"], part["cost"]) for part in device["parts"]] == [
        (0, IS_GPU, "true", 4),
        (1, "device.driver", '"gpu.nvidia.com"', 2),
        (0, MEMORY, "false", 7),
        (1, MEMORY.removesuffix(" >= 0"), "-1", 6),
        (2, "device.capacity['gpu.nvidia.com'].memory", "20475Mi", 4),
    ]


def test_the_estimate_stands_beside_the_cost(command: Command) -> None:
    data = command("cel", "--plan", A1_S, f"{IS_GPU}", "-o", "json").data
    assert data["estimatedCost"]["min"] <= data["devices"][0]["cost"] <= data["estimatedCost"]["max"]


def test_every_plan_with_gpus_is_tried_and_those_without_are_counted(command: Command) -> None:
    result = command("cel", IS_GPU, "-o", "json")
    assert result.code == 0
    assert set(outcomes(result).values()) == {"match"}
    assert {f"{A1_S}/gpu-0", f"{A2_S}/gpu-1", f"{BLACKWELL}/gpu-0"} <= set(outcomes(result))
    assert "plans without GPUs left out" in result.err


def test_a_plan_on_which_the_selector_fails_does_not_spoil_the_others(command: Command) -> None:
    result = command("cel", "device.attributes['gpu.nvidia.com'].architecture == 'Blackwell'", "-o", "json")
    assert result.code == 0
    found = outcomes(result)
    assert [name for name, outcome in found.items() if outcome == "match"] == [f"{BLACKWELL}/gpu-0"]
    assert found["g1-gpu-rtx6000-1/gpu-0"] == "error"


def test_yaml_holds_the_same_as_json(command: Command) -> None:
    arguments = ("cel", "--plan", A1_S, IS_GPU, "-o")
    assert yaml.safe_load(command(*arguments, "yaml").out) == command(*arguments, "json").data


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("device.driver", "must evaluate to bool or the unknown type, not string"),
        ("nope(device)", "undeclared reference to 'nope'"),
        ("device.driver == 1", "found no matching overload for '_==_'"),
        ("device.foo == 'x'", "undefined field 'foo'"),
        ("int('x') == 1", "program instantiation failed"),
        ("device.driver.matches('(')", "missing"),
        ("1.0.", "Syntax error"),
    ],
)
def test_what_does_not_compile_is_shown_with_a_caret(command: Command, expression: str, message: str) -> None:
    result = command("cel", expression)
    assert result.code == 2
    assert result.out == ""
    assert message in result.err
    assert result.err.rstrip().endswith("^")


def test_an_expression_has_10_kib_and_no_more(command: Command) -> None:
    fits = f"{IS_GPU} && 'x' != '{'y' * (10_240 - len(IS_GPU) - 13)}'"
    assert len(fits) == 10_240
    assert command("cel", "--plan", A1_S, fits).code == 0
    result = command("cel", fits + " ")
    assert result.code == 2
    assert "too long: found 10241 bytes, expected at most 10240" in result.err


def test_what_may_cost_too_much_is_refused_with_its_estimate(command: Command) -> None:
    deep = "true"
    for name in "abcdefgh":
        deep = f"device.attributes.all({name}, {deep})"
    result = command("cel", deep)
    assert result.code == 2
    assert "too complex, exceeds cost limit: its cost may be 3511343585475 units" in result.err
    assert "expected at most 1000000" in result.err


def test_what_does_cost_too_much_is_an_error_of_the_device(command: Command, tmp_path: Path) -> None:
    # the estimate takes a list to have 64 entries at most
    file = saved(tmp_path, resource_slice("s", gpu("gpu-0", many={"ints": list(range(1000))})))
    many = "device.attributes['gpu.nvidia.com'].many"
    result = command("cel", "--slice", file, f"{many}.all(a, {many}.all(b, a >= 0 || b >= 0))", "-o", "json")
    assert result.code == 1
    assert result.data["devices"][0]["error"] == "operation cancelled: actual cost limit exceeded"


def test_a_result_that_turns_out_to_be_no_bool_is_an_error_of_the_device(command: Command) -> None:
    result = command("cel", "--plan", A1_S, "device.attributes['gpu.nvidia.com'].type")
    assert result.code == 1
    assert "CEL result of type string could not be converted to bool" in result.out


def test_an_expression_from_a_file_or_the_standard_input(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "selector.cel"
    file.write_text(f"{IS_GPU} &&\n  device.driver == 'other'\n")
    result = command("cel", "--plan", A1_S, "--file", str(file))
    assert result.code == 1
    assert "device.driver == 'other' -> false" in result.out
    file.write_text("device.driver ==\n  'a' +")
    result = command("cel", "--file", str(file))
    assert result.code == 2
    assert result.err.startswith(f"error: {file}: compilation failed: 2:8: ")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(f"{IS_GPU}\n".encode())))
    assert command("cel", "--plan", A1_S).code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--plan", "g2-gpu-rtx4000a1-z", IS_GPU], "is g2-gpu-rtx4000a1-"),
        (["--plan", "g6-standard-1", IS_GPU], "has no GPU"),
        (["--plan", A1_S, "--slice", "x.yaml", IS_GPU], "--plan or --slice"),
        (["--file", "x", IS_GPU], "EXPRESSION or --file"),
        (["--file", "tests", "--plan", A1_S], "a directory"),
        (["--slice", "nowhere.yaml", IS_GPU], "no such file"),
        (["--slice", "examples/ada-gpu/cluster.yaml", IS_GPU], "no ResourceSlice in it"),
        (["--slice", "-"], "both slices and expressions"),
        (["--repl", IS_GPU], "--repl"),
        (["\udcff"], "not UTF-8"),
    ],
)
def test_calls_that_make_no_sense(command: Command, arguments: list[str], message: str) -> None:
    result = command("cel", *arguments)
    assert result.code == 2
    assert message in result.err
    assert "Traceback" not in result.err


def test_devices_of_a_slice_file(command: Command, tmp_path: Path) -> None:
    file = saved(
        tmp_path,
        resource_slice("a", gpu("gpu-0", uuid={"string": "x"}), gpu("gpu-1", uuid={"string": "z"})),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}},
    )
    result = command("cel", "--slice", file, UUID, "-o", "json")
    assert result.code == 0
    assert outcomes(result) == {"a/gpu-0": "match", "a/gpu-1": "no_match"}
    assert "1 object other than ResourceSlices ignored" in result.err


def test_one_slice_as_json(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "slice.json"
    file.write_text(json.dumps(resource_slice("a", gpu("gpu-0", uuid={"string": "x"}))))
    assert command("cel", "--slice", str(file), UUID).code == 0


@pytest.mark.parametrize(
    ("read", "hint"),
    [
        ("attributes['gpu.nvidia.com'].productname == 'x'", "is productName meant? names are case-sensitive"),
        (
            "attributes['gpu.nvidia.com'].memory == '24Gi'",
            "is device.capacity['gpu.nvidia.com'].memory meant?",
        ),
        ("attributes['gpu.nvida.com'].type == 'gpu'", "is device.attributes['gpu.nvidia.com'].type meant?"),
    ],
)
def test_a_key_that_is_not_there_is_answered_with_the_one_that_is(command: Command, read: str, hint: str) -> None:
    told = command("cel", "--plan", "g2-gpu-rtx4000a1-s", f"device.{read}")
    assert told.code == 1
    assert f"  hint: {hint}\n" in told.out
    (device,) = command("cel", "--plan", "g2-gpu-rtx4000a1-s", f"device.{read}", "-o", "json").data["devices"]
    assert device["hint"] == hint


def test_a_selector_that_fails_beside_a_match_is_not_good_enough(command: Command, tmp_path: Path) -> None:
    file = saved(tmp_path, resource_slice("a", gpu("gpu-0", uuid={"string": "x"}), gpu("gpu-1")))
    result = command("cel", "--slice", file, UUID)
    assert result.code == 1
    assert "1 of 2 devices matches" in result.out
    assert "error on a: no such key: uuid" in result.out


@pytest.mark.parametrize(
    ("slices", "note"),
    [
        (
            [resource_slice("a", gpu("g0"), count=2)],
            "currently being updated: generation 1 shows 1 of 2 slices",
        ),
        (
            [resource_slice("a", gpu("g0"), count=2), resource_slice("b", gpu("g1"), count=3)],
            "currently being updated: generation 1 is declared with 2 and 3 slices",
        ),
        (
            [resource_slice("a", gpu("g0"), count=2), resource_slice("b", gpu("g0"), count=2)],
            "currently invalid: device g0 is listed twice",
        ),
        (
            [resource_slice("a", gpu("g0")), resource_slice("b", gpu("g0"), generation=2)],
            "is at generation 2: the devices of 1 older slice (a) are no longer given to claims",
        ),
    ],
)
def test_pools_that_no_claim_is_served_from_are_named(
    command: Command, tmp_path: Path, slices: list[dict[str, Any]], note: str
) -> None:
    result = command("cel", "--slice", saved(tmp_path, *slices), IS_GPU)
    assert "note: pool gpu.nvidia.com/node-1 " in result.err
    assert note in result.err


@pytest.mark.parametrize(
    ("device", "place", "message"),
    [
        ({"name": "g", "capacity": {"memory": {"value": "20 GB"}}}, "capacity.memory.value", "'20 GB'"),
        (gpu("g", v={"version": "1.2"}), "attributes.v.version", "semver"),
        (gpu("g", v={"int": "1"}), "attributes.v.int", "a whole number"),
        (gpu("g", v={"int": 1, "bool": True}), "attributes.v", "exactly one value"),
        (gpu("g", v={"int": 2**63}), "attributes.v", "64 bits"),
        (gpu(""), "name", "required value"),
        (gpu("GPU_0"), "name", "must be a DNS label"),
    ],
)
def test_what_is_malformed_in_a_slice_is_located(
    command: Command, tmp_path: Path, device: dict[str, Any], place: str, message: str
) -> None:
    result = command("cel", "--slice", saved(tmp_path, resource_slice("a", device)), IS_GPU)
    assert result.code == 2
    assert f"ResourceSlice a, spec.devices[0].{place}" in result.err
    assert message in result.err


def test_a_device_listed_twice_in_a_slice(command: Command, tmp_path: Path) -> None:
    result = command("cel", "--slice", saved(tmp_path, resource_slice("a", gpu("g"), gpu("g"))), IS_GPU)
    assert result.code == 2
    assert 'spec.devices[1].name: duplicate value: "g"' in result.err
