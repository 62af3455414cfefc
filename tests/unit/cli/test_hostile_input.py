"""Whatever the input holds, the command line answers with 0, 1 or 2: never a traceback, never for ever."""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from karpenter_linode.cli.errors import InputError
from karpenter_linode.cli.json_reader import read_json
from karpenter_linode.cli.main import run
from karpenter_linode.cli.manifests import load
from karpenter_linode.cli.yaml_reader import MAX_DEPTH, read_yaml

ROOT = Path(__file__).parents[3]
OBJECTS = [
    document.plain()
    for file in sorted((ROOT / "examples/ada-gpu").glob("*.yaml"))
    for document in read_yaml(file.read_text(), file.name)
]
EXTRA = [
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "c"}]}}},
    },
    {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "d"},
        "spec": {"template": {"spec": {"containers": [{"name": "c"}]}}},
    },
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {
            "driver": "gpu.nvidia.com",
            "nodeName": "n",
            "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0", "attributes": {"type": {"string": "gpu"}}}],
        },
    },
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4"}}},
]
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(
        ["", "1x", "16Gi", "-1", "gpu.nvidia.com", "default", "In", "\x1b[2J", "ⅷ", "a" * 300, "All", "Never"]
    )
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


def paths(plain: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(plain, dict):
        found += [inner for key, value in plain.items() for inner in paths(value, (*path, key))]
    elif isinstance(plain, list):
        found += [inner for index, value in enumerate(plain) for inner in paths(value, (*path, index))]
    return found


def replaced(plain: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copy = dict(plain) if isinstance(plain, dict) else list(plain)
    copy[path[0]] = replaced(copy[path[0]], path[1:], value)
    return copy


def exit_code(text: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode("utf-8", "surrogatepass"))))
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as err:
        code = run(["plan", "-", "--explain"])
    assert code != 70, err.getvalue()
    return code


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_field_of_any_object_may_hold_anything(data: st.DataObject, monkeypatch: pytest.MonkeyPatch) -> None:
    objects: list[Any] = [*OBJECTS, *EXTRA]
    for _ in range(data.draw(st.integers(1, 3))):
        number = data.draw(st.integers(0, len(objects) - 1))
        path = data.draw(st.sampled_from(paths(objects[number])))
        objects[number] = replaced(objects[number], path, data.draw(PLAIN))
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    assert exit_code(text, monkeypatch) in {0, 1, 2}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(alphabet=st.sampled_from(list("ab:-[]{}&*!|>'\"\n #,?<%@`\t~01.\x00é")), max_size=60))
def test_any_text_is_read_or_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "in.yaml"
    file.write_text(text, encoding="utf-8")
    try:
        load([str(file)])
    except InputError as error:
        assert error.findings  # noqa: PT017 - either way is fine, a refusal without a word is not


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.integers(0, 4000), junk=st.binary(max_size=6))
def test_a_manifest_that_is_cut_and_soiled_is_read_or_refused(cut: int, junk: bytes, tmp_path: Path) -> None:
    whole = (ROOT / "examples/ada-gpu/workload.yaml").read_bytes()
    file = tmp_path / "in.yaml"
    file.write_bytes(whole[:cut] + junk + whole[cut + 3 :])
    try:
        load([str(file)])
    except InputError as error:
        assert error.findings  # noqa: PT017 - likewise


def test_a_hundred_thousand_replicas_are_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    deployment = {**EXTRA[0], "spec": {**EXTRA[0]["spec"], "replicas": 10**9}}  # type: ignore[dict-item]
    assert exit_code(json.dumps(deployment), monkeypatch) == 2


def test_json_may_nest_as_deep_as_yaml_and_no_deeper() -> None:
    for depth, refused in ((MAX_DEPTH, False), (MAX_DEPTH + 1, True), (900, True)):
        text = "[" * depth + "]" * depth
        if not refused:
            assert read_json(text, "in.json").plain()
            continue
        with pytest.raises(InputError, match=f"nested deeper than {MAX_DEPTH} levels"):
            read_json(text, "in.json")


def test_a_snapshot_nested_too_deep_is_bad_input(tmp_path: Path) -> None:
    snapshot = tmp_path / "problem.json"
    snapshot.write_text('{"unknown": ' + "[" * 100_000 + "]" * 100_000 + "}")
    with redirect_stderr(io.StringIO()) as told:
        assert run(["plan", "--snapshot", str(snapshot)]) == 2
    assert "nested too deep" in told.getvalue()
