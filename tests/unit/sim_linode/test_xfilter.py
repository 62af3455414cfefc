"""The filter language: spec/linode-provider.md 7.5."""

from __future__ import annotations

import json
from typing import Any

import pytest

from karpenter_linode.sim.linode.records import ApiFaultError
from karpenter_linode.sim.linode.xfilter import apply_filter

ROWS = [
    {"id": 1, "label": "web-1", "tags": ["a=1", "plain"], "memory": 4096, "hidden": 1},
    {"id": 2, "label": "web-2", "tags": ["a=12"], "memory": 8192, "hidden": 1},
    {"id": 3, "label": "db", "tags": [], "memory": 4096, "hidden": 1},
]
FIELDS = frozenset({"id", "label", "tags", "memory"})


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ({}, [1, 2, 3]),
        ({"label": "web-1"}, [1]),
        ({"label": {"+contains": "web"}}, [1, 2]),
        ({"tags": "a=1"}, [1]),
        ({"tags": {"+contains": "a=1"}}, [1, 2]),
        ({"memory": {"+gt": 4096}}, [2]),
        ({"memory": {"+gte": 4096}}, [1, 2, 3]),
        ({"memory": {"+lt": 8192}}, [1, 3]),
        ({"memory": {"+lte": 4096, "+gte": 4096}}, [1, 3]),
        ({"label": {"+neq": "db"}}, [1, 2]),
        ({"label": "db", "memory": 8192}, []),
        ({"+and": [{"tags": {"+contains": "a=1"}}, {"tags": {"+contains": "plain"}}]}, [1]),
        ({"+or": [{"label": "db"}, {"id": 2}]}, [2, 3]),
        ({"+order_by": "memory", "+order": "desc"}, [2, 1, 3]),
        ({"memory": 4096, "+limit": 1}, [1]),
        ({"memory": {"+gt": "big"}}, []),
    ],
)
def test_a_filter_selects_and_orders(query: dict[str, Any], ids: list[int]) -> None:
    assert [row["id"] for row in apply_filter(ROWS, json.dumps(query), FIELDS)] == ids


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "7",
        '{"hidden": 1}',
        '{"label": {"+eq": "x"}}',
        '{"tags": {"+contains": ["a"]}}',
        '{"+and": {"label": "x"}}',
        '{"+or": [7]}',
        '{"+order_by": "hidden"}',
        '{"+and": [' * 20 + "{}" + "]}" * 20,
    ],
)
def test_what_is_no_filter_over_these_fields_is_a_400(text: str) -> None:
    with pytest.raises(ApiFaultError) as caught:
        apply_filter(ROWS, text, FIELDS)
    assert caught.value.status == 400
