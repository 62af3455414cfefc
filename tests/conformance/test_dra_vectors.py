"""The allocation vectors at 100 %: outcomes equal Kubernetes', devices are judged by the rules of the README there."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import dra_judge
import pytest
import run_vectors

HERE = Path(__file__).parent
FILES = ("dra-allocation", "dra-newer-build-only", "dra-upstream-misses")


def rows_by_group() -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for file in FILES:
        for row in run_vectors.read_rows(HERE / "data" / f"{file}.jsonl.gz"):
            groups[f"{file}:{row['group']}"].append(row)
    return dict(groups)


GROUPS = rows_by_group()


def expected(row: dict[str, Any]) -> str:
    if "legal_set" in row:
        return "allocated" if row["legal_set"] else "none"
    return str(row["outcome"])


@cache
def _answers() -> dict[str, Any]:
    return {}


def answer_of(row: dict[str, Any]) -> dict[str, Any]:
    """Our answer to a row, worked out once."""
    known: dict[str, Any] = _answers()
    if row["id"] not in known:
        known[row["id"]] = run_vectors.answer_dra(row)
    return dict(known[row["id"]])


def verdict(row: dict[str, Any]) -> str:
    """What is wrong with our answer to a row; empty when it is right."""
    answer = answer_of(row)
    if answer["outcome"] != expected(row):
        return (
            f"{row['id']}: {answer['outcome']} instead of {expected(row)} ({answer.get('error') or row.get('error')})"
        )
    if answer["outcome"] != "allocated":
        return ""
    problem = dra_judge.Judge(row).problem(answer["results"])
    if problem:
        return f"{row['id']}: {problem}"
    preferred = row.get("preferred")
    first = row["input"]["claims"][0]["metadata"]["name"]
    if preferred and answer["results"][first][0][0] != preferred:
        return f"{row['id']}: {answer['results'][first][0][0]} instead of the preferred {preferred}"
    return ""


@pytest.mark.parametrize("group", sorted(GROUPS))
def test_answers_agree_with_kubernetes(group: str) -> None:
    wrong = [problem for problem in map(verdict, GROUPS[group]) if problem]
    assert not wrong, "\n".join(wrong[:20])


def test_every_row_is_run() -> None:
    assert sum(len(rows) for rows in GROUPS.values()) == 2849 + 627 + 250


def test_the_judge_accepts_the_results_of_the_vectors() -> None:
    wrong = []
    for rows in GROUPS.values():
        for row in rows:
            results = row["legal_set"] if "legal_set" in row else row["results"]
            if expected(row) == "allocated":
                problem = dra_judge.Judge(row).problem(results)
                if problem:
                    wrong.append(f"{row['id']}: {problem}")
    assert not wrong, "\n".join(wrong[:20])


def test_node_selectors_agree_where_the_same_devices_are_chosen() -> None:
    wrong = []
    compared = 0
    for rows in GROUPS.values():
        for row in rows:
            if "node_selector" not in row:
                continue
            answer = answer_of(row)
            assert answer["outcome"] == "allocated", row["id"]
            for claim, selector in row["node_selector"].items():
                if sorted(answer["results"][claim]) == sorted(row["results"][claim]):
                    compared += 1
                    if _plain(answer["node_selector"][claim]) != _plain(selector):
                        wrong.append(f"{row['id']} {claim}: {answer['node_selector'][claim]} instead of {selector}")
    assert compared > 1000
    assert not wrong, "\n".join(wrong[:20])


def _plain(selector: dict[str, Any] | None) -> Any:
    """Terms with their expressions in any order."""
    if selector is None:
        return None
    return [
        {kind: sorted(map(str, items)) for kind, items in term.items() if items}
        for term in selector["nodeSelectorTerms"]
    ]
