"""The scheduling vectors: unschedulable sets equal, placements legal, never dearer, plan sets equal where pods are."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import run_vectors
import scheduling_judge

HERE = Path(__file__).parent
# Rows where upstream's own outcome is wrong, and pods that must be unschedulable instead.
ODDITIES = {
    "odd-contradiction": {"a"},  # NotIn and In on one key exclude each other
    "odd-contradiction-selector": {"a"},
    "odd-required-alone": {"a"},
    "odd-lt-alone": {"b"},
    "odd-anti-first-free": {"p"},
    "odd-anti-owner-first": {"q"},
}


def rows_by_group(file: str) -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in run_vectors.read_rows(HERE / "data" / file):
        groups[row.get("group", row["id"])].append(row)
    return dict(groups)


GROUPS = rows_by_group("scheduling.jsonl.gz")
ODD = rows_by_group("scheduling-oddities.jsonl.gz")


@pytest.mark.parametrize("group", sorted(GROUPS))
def test_answers_pass_the_judge(group: str) -> None:
    faults = {row["id"]: scheduling_judge.judge(row, run_vectors.answer_scheduling(row)) for row in GROUPS[group]}
    assert {name: found for name, found in faults.items() if found} == {}


@pytest.mark.parametrize("name", sorted(ODD))
def test_where_upstream_is_wrong_the_legal_answer_is_given(name: str) -> None:
    row = ODD[name][0]
    answer = run_vectors.answer_scheduling(row)
    expected = ODDITIES.get(name, set())
    assert set(answer["errors"]) == expected
    row["outcome"]["errors"] = dict.fromkeys(expected, "")
    row["outcome"]["price"] = sum(claim["cheapest"]["price"] for claim in answer["newNodeClaims"])
    assert scheduling_judge.judge(row, answer) == []


def test_the_judge_refuses_an_illegal_answer() -> None:
    row = next(row for row in GROUPS["taints"] if row["outcome"]["newNodeClaims"])
    answer = run_vectors.answer_scheduling(row)
    answer["newNodeClaims"] = [{**claim, "pods": []} for claim in answer["newNodeClaims"]]
    assert scheduling_judge.judge(row, answer) != []
