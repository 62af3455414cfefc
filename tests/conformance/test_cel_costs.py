"""What device selectors cost, as Kubernetes counts it.

``data/cel-costs.jsonl.gz`` has expressions, each with its outcome, the cost of its evaluation (where there is a result)
and its static estimate. Kubernetes 1.34 and 1.37 agree on all of them: the numbers are what their modules
``k8s.io/dynamic-resource-allocation`` answered.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import run_vectors

from karpenter_linode.cel import CelError, CompileError, CostLimitExceededError

HERE = Path(__file__).parent
SLICES = 8


@cache
def rows() -> list[dict[str, Any]]:
    return list(run_vectors.read_rows(HERE / "data" / "cel-costs.jsonl.gz"))


def variables_of(row: dict[str, Any]) -> Any:
    given = row["device"]
    amounts = given.get("capacity") or {}
    capacity = {name: {"value": amount} if isinstance(amount, str) else amount for name, amount in amounts.items()}
    device = run_vectors.codec.convert({"name": "device", **given, "capacity": capacity}, run_vectors.Device)
    return run_vectors.Shape(0, given["driver"], device, {}).cel_input()


def answer(row: dict[str, Any]) -> dict[str, Any]:
    """What a row should say, as far as it says it."""
    try:
        program = run_vectors.CEL_ENVIRONMENT.compile(row["expression"])
    except CompileError:
        return {"outcome": "compile_error"}
    most = program.estimate[1]
    try:
        matched, cost = program.evaluate_counted(variables_of(row))
    except CelError as error:
        return {"outcome": "runtime_error", "max": most, "limit": isinstance(error, CostLimitExceededError)}
    return {"outcome": "match" if matched else "no_match", "max": most, "cost": cost}


@pytest.mark.parametrize("part", range(SLICES))
def test_outcomes_costs_and_estimates_are_those_of_kubernetes(part: int) -> None:
    wrong = []
    for row in rows()[part::SLICES]:
        expected = {name: row[name] for name in ("outcome", "cost", "limit", "max") if name in row}
        found = answer(row)
        if {name: found.get(name) for name in expected} != expected:
            wrong.append((row["expression"], expected, found))
    assert wrong == []


def test_there_are_rows_of_every_kind() -> None:
    kinds = {row["outcome"] for row in rows()}
    assert kinds == {"match", "no_match", "runtime_error", "compile_error"}
    assert sum("cost" in row for row in rows()) > 2000
    assert any(row.get("limit") for row in rows())
