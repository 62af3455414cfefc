"""Merge, strategic and JSON patches, against the examples of their standards."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karpenter_linode.model.core import Node
from karpenter_linode.ports import InvalidError
from karpenter_linode.sim.patches import json_patch, merge_patch
from karpenter_linode.sim.resource_types import type_of
from karpenter_linode.sim.schemas import schema_of
from karpenter_linode.sim.strategic import strategic_merge

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)

RFC_7386 = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("target", "patch", "expected"), RFC_7386)
def test_merge_patch_follows_the_standard(target: Any, patch: Any, expected: Any) -> None:
    assert merge_patch(target, patch) == expected


@given(JSON, JSON)
def test_patching_changes_neither_side_and_is_idempotent(target: Any, patch: Any) -> None:
    before = copy.deepcopy((target, patch))
    once = merge_patch(target, patch)
    assert merge_patch(once, patch) == once
    assert (target, patch) == before


def strategic_merge_patch(target: Any, patch: Any) -> Any:
    """A strategic merge patch applied to what a Node holds."""
    return strategic_merge(schema_of(type_of(Node)), target, patch)


def test_strategic_merge_joins_conditions_by_type() -> None:
    before = [{"type": "Ready", "status": "False"}, {"type": "DiskPressure", "status": "False"}]
    change = [{"type": "Ready", "status": "True"}, {"type": "PIDPressure", "status": "False"}]
    merged = strategic_merge_patch({"status": {"conditions": before}}, {"status": {"conditions": change}})
    assert merged["status"]["conditions"] == [
        {"type": "Ready", "status": "True"},
        {"type": "DiskPressure", "status": "False"},
        {"type": "PIDPressure", "status": "False"},
    ]


def test_strategic_merge_treats_finalizers_as_a_set() -> None:
    target = {"metadata": {"finalizers": ["a", "b"]}}
    assert strategic_merge_patch(target, {"metadata": {"finalizers": ["b", "c"]}})["metadata"]["finalizers"] == [
        "a",
        "b",
        "c",
    ]
    gone = strategic_merge_patch(target, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}})
    assert gone["metadata"]["finalizers"] == ["b"]


def test_strategic_merge_deletes_and_replaces_by_directive() -> None:
    target = {"metadata": {"ownerReferences": [{"uid": "1"}, {"uid": "2"}]}}
    gone = strategic_merge_patch(target, {"metadata": {"ownerReferences": [{"$patch": "delete", "uid": "1"}]}})
    assert gone["metadata"]["ownerReferences"] == [{"uid": "2"}]
    new = strategic_merge_patch(target, {"metadata": {"ownerReferences": [{"$patch": "replace"}, {"uid": "3"}]}})
    assert new["metadata"]["ownerReferences"] == [{"uid": "3"}]


def test_strategic_merge_replaces_taints_whole() -> None:
    target = {"spec": {"taints": [{"key": "a"}]}}
    assert strategic_merge_patch(target, {"spec": {"taints": [{"key": "b"}]}}) == {"spec": {"taints": [{"key": "b"}]}}


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([{"op": "add", "path": "/b", "value": 1}], {"a": [1, 2], "b": 1}),
        ([{"op": "add", "path": "/a/1", "value": 9}], {"a": [1, 9, 2]}),
        ([{"op": "add", "path": "/a/-", "value": 9}], {"a": [1, 2, 9]}),
        ([{"op": "replace", "path": "/a/0", "value": 9}], {"a": [9, 2]}),
        ([{"op": "remove", "path": "/a/0"}], {"a": [2]}),
        ([{"op": "move", "from": "/a", "path": "/c"}], {"c": [1, 2]}),
        ([{"op": "copy", "from": "/a", "path": "/c"}], {"a": [1, 2], "c": [1, 2]}),
        ([{"op": "test", "path": "/a/1", "value": 2}], {"a": [1, 2]}),
        ([{"op": "add", "path": "/x~1y~0z", "value": 1}], {"a": [1, 2], "x/y~z": 1}),
    ],
)
def test_json_patch_operations(operations: list[dict[str, Any]], expected: Any) -> None:
    assert json_patch({"a": [1, 2]}, operations) == expected


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/nothing"},
        {"op": "replace", "path": "/nothing", "value": 1},
        {"op": "replace", "path": "/a/2", "value": 1},
        {"op": "add", "path": "/a/7", "value": 1},
        {"op": "add", "path": "/nothing/below", "value": 1},
        {"op": "test", "path": "/a/0", "value": 7},
        {"op": "guess", "path": "/a"},
    ],
)
def test_json_patch_refuses_what_it_cannot_do(operation: dict[str, Any]) -> None:
    with pytest.raises(InvalidError):
        json_patch({"a": [1, 2]}, [operation])
