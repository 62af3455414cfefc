"""Device selectors as Kubernetes 1.34 judges them, and Google's CEL conformance tests where they are at hand."""

from __future__ import annotations

import gzip
import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import run_vectors

from karpenter_linode.cel import CompileError, Environment, EvaluationError, Type
from karpenter_linode.cel import types as t
from karpenter_linode.cel.declarations import Library, Overload
from karpenter_linode.cel.libraries import KUBERNETES
from karpenter_linode.cel.values import (
    NONE,
    Duration,
    Optional,
    Timestamp,
    TypeValue,
    UInt,
    decode_key,
    make_map,
)

HERE = Path(__file__).parent
SPEC = HERE.parents[2] / "shared" / "vectors" / "cel-spec" / "cel-spec.jsonl.gz"  # kept beside the project


@cache
def selector_rows() -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in run_vectors.read_rows(HERE / "data" / "cel-selectors.jsonl.gz"):
        groups.setdefault(row["group"], []).append(row)
    return groups


GROUPS = (
    *(
        "access",
        "bind",
        "compile",
        "conversions",
        "format",
        "ip-cidr",
        "limits",
        "lists",
        "literals",
        "logic",
        "macros",
    ),
    *("maps", "numbers", "operators", "optionals", "quantity", "random", "realistic", "regex", "result-type", "semver"),
    *("sets", "strings", "syntax", "time", "types", "url"),
)


@pytest.mark.parametrize("group", GROUPS)
def test_selectors_come_out_as_kubernetes_1_34_has_them(group: str) -> None:
    answer = run_vectors.answer_cel
    rows = selector_rows()[group]
    wrong = [
        (row["id"], row["expression"], row["outcome"], found)
        for row in rows
        if (found := answer(row))["outcome"] != row["outcome"]
    ]
    assert rows
    assert wrong == []


def test_no_group_of_selectors_is_left_out() -> None:
    assert set(selector_rows()) == set(GROUPS)
    assert sum(map(len, selector_rows().values())) == 2092


# Google's conformance tests


CORE = (
    *(
        "basic",
        "comparisons",
        "conversions",
        "fields",
        "fp_math",
        "integer_math",
        "lists",
        "logic",
        "macros",
        "namespace",
    ),
    *("parse", "plumbing", "string", "timestamps", "type_deduction"),
)
EXTENSIONS = ("bindings_ext", "macros2", "network_ext", "optionals", "string_ext")
NOT_ENABLED = ("block_ext", "encoders_ext", "math_ext")
"""Kubernetes enables none of these for device selectors: their functions must stay unknown."""

OTHERWISE_IN_KUBERNETES = {
    # version 2 of the strings extension, the one Kubernetes enables, formats in the English locale and as literals:
    # cel-format rows of cel-selectors such as "%e".format([1234.5]) and "%s".format([["a"]]) say so
    **dict.fromkeys(
        (2181, 2185, 2188, 2189, 2190, 2195, 2196, 2204, 2205, 2206, 2216, 2217, 2220, 2221, 2227), "format, v2"
    ),
    # ... and takes only doubles for %f and %e, only integers for %d: cel-selectors has "%f".format([1]) as an error
    **dict.fromkeys((2183, 2184, 2186, 2187, 2191, 2192, 2193), "format clauses, v2"),
    # reverse() of a string came with version 3: row 78 of the specification's examples
    **dict.fromkeys((2292, 2293, 2294), "strings, v3"),
    # an offset behind the end finds nothing: cel-selectors has "abc".indexOf("a", 4) == -1 as a match
    **dict.fromkeys((2257, 2259), "offsets"),
    # Kubernetes refuses IPv4 addresses in IPv6 clothes: cel-selectors has ip("::ffff:1.2.3.4") as an error
    **dict.fromkeys((1471, 1472), "mapped addresses"),
    # constants are folded in Kubernetes, and one that can be no key is an error before anything absorbs it
    **dict.fromkeys((935, 936), "constant keys"),
    # durations tell all of their milliseconds there, not only those beyond the seconds
    2354: "milliseconds",
    # of equal keys in a map literal the last one counts there: cel-costs has {"a": 1, "a": 2}.size() == 1 as a match
    **dict.fromkeys((970, 971), "equal keys"),
}
"""Row numbers where Kubernetes' verdict, which counts here, is another than that of the newest cel-go."""


@cache
def spec_rows() -> list[tuple[int, dict[str, Any]]]:
    with gzip.open(SPEC, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [(number, row) for number, row in enumerate(rows) if not row.get("proto")]


def environment_of(row: dict[str, Any]) -> Environment:
    variables = {each["name"]: type_of(each["type"]) for each in row.get("type_env", ()) if "type" in each}
    functions = {
        each["name"]: tuple(
            Overload(
                item["id"],
                tuple(map(type_of, item["params"])),
                type_of(item["result"]),
                lambda *_: None,
                member=item.get("member", False),
            )
            for item in each["overloads"]
        )
        for each in row.get("type_env", ())
        if "overloads" in each
    }
    checked = not row.get("disable_check")
    if not checked:
        variables = {**dict.fromkeys(row.get("bindings", ()), t.DYN), **variables}
    return Environment(
        variables,
        libraries=(*KUBERNETES, Library("of the test", functions)),
        container=row.get("container", ""),
        checked=checked,
        homogeneous=False,
        quoted_fields=True,
    )


def passes(row: dict[str, Any]) -> bool:
    expected = row["expect"]
    try:
        program = environment_of(row).compile(row["expr"], result=None)
        if row.get("check_only"):
            return bool(program.type == type_of(expected["typed_result"]["type"]))
        found = program.evaluate({name: value_of(value) for name, value in row.get("bindings", {}).items()})
    except (CompileError, EvaluationError):
        return "error" in expected
    if "typed_result" in expected:
        typed = expected["typed_result"]
        return program.type == type_of(typed["type"]) and same(value_of(typed["value"]), found)
    return "value" in expected and same(value_of(expected["value"]), found)


@pytest.mark.skipif(not SPEC.exists(), reason="third-party data, used where it lies")
@pytest.mark.parametrize("file", [*CORE, *EXTENSIONS])
def test_the_language_is_the_one_of_cel_spec(file: str) -> None:
    rows = [(number, row) for number, row in spec_rows() if row["file"] == file]
    failed = {number for number, row in rows if not passes(row)}
    listed = {number for number, _ in rows if number in OTHERWISE_IN_KUBERNETES}
    assert rows
    assert failed == listed, [row["expr"] for number, row in rows if number in failed ^ listed]


@pytest.mark.skipif(not SPEC.exists(), reason="third-party data, used where it lies")
def test_libraries_that_kubernetes_does_not_enable_stay_unknown() -> None:
    named = {row["file"] for _, row in spec_rows()}
    assert named == {*CORE, *EXTENSIONS, *NOT_ENABLED}
    for text in ("math.greatest(1, 2) == 2", 'base64.encode(b"a") == "YQ=="', "cel.block([1], true)"):
        with pytest.raises(CompileError, match="undeclared reference"):
            Environment({}).compile(text)


# typed values and types of the rows


def value_of(typed: dict[str, Any]) -> Any:
    ((kind, held),) = typed.items()
    match kind:
        case "uint":
            return UInt(held)
        case "double":
            return float(held)
        case "bytes":
            return bytes.fromhex(held)
        case "list":
            return [value_of(element) for element in held]
        case "map":
            return make_map((value_of(key), value_of(value)) for key, value in held)
        case "duration":
            return Duration(held[0] * 10**9 + held[1])
        case "timestamp":
            return Timestamp(held[0] * 10**9 + held[1])
        case "type":
            return TypeValue(held)
        case _:
            return held


def same(left: Any, right: Any) -> bool:
    if type(left) is not type(right):
        return isinstance(left, dict) and isinstance(right, dict) and same(dict(left), dict(right))
    if isinstance(left, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        pairs = {decode_key(key): value for key, value in right.items()}
        return len(left) == len(right) and all(
            decode_key(key) in pairs and same(value, pairs[decode_key(key)]) for key, value in left.items()
        )
    if isinstance(left, Optional):
        return left is right or (NONE not in (left, right) and same(left.value, right.value))
    return bool(left == right)


def type_of(spelled: Any) -> Type:
    if isinstance(spelled, str):
        names = {"null": "null_type", "timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration"}
        return {"dyn": t.DYN, "any": t.ANY}.get(spelled) or t.abstract_type(names.get(spelled, spelled))
    ((kind, held),) = spelled.items()
    match kind:
        case "list":
            return t.list_of(type_of(held))
        case "map":
            return t.map_of(type_of(held[0]), type_of(held[1]))
        case "type":
            return t.type_of(type_of(held))
        case "param":
            return t.type_param(held)
        case "abstract":
            return t.abstract_type(held[0], *map(type_of, held[1]))
        case _:
            return t.abstract_type(held)


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ({"device": {"driver": "d", "capacity": {"m": "1 GB"}}, "expression": "true"}, "'1 GB' is not a quantity"),
        (
            {"device": {"driver": "d", "attributes": {"v": {"version": "1.x"}}}, "expression": "true"},
            "semantic version",
        ),
    ],
)
def test_a_row_with_a_device_that_no_api_server_would_store_is_answered(row: dict[str, Any], error: str) -> None:
    answer = run_vectors.answer("cel", {"id": "x", **row})
    assert (answer["id"], answer["outcome"]) == ("x", "runtime_error")
    assert error in answer["error"]
