"""Against the cheapest legal answer of tiny problems: never illegal, never "cheaper", and how far off at most."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

TESTS = Path(__file__).parents[1]


def load(path: str) -> Any:
    name = f"optimum_{Path(path).stem}"
    spec = importlib.util.spec_from_file_location(name, TESTS / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


exhaustive = load("properties/scheduling_optimum.py")
judge = load("conformance/scheduling_judge.py")
run_vectors = load("conformance/run_vectors.py")
ENDLESS = 10**6


def answer(problem: dict[str, Any]) -> tuple[int, list[str]]:
    """The price of our answer and what is illegal about it."""
    row = {"id": "tiny", "problem": problem, "outcome": {"errors": {}, "newNodeClaims": [], "price": ENDLESS}}
    found = run_vectors.answer_scheduling(row)
    return round(sum(claim["cheapest"]["price"] for claim in found["newNodeClaims"])), judge.judge(row, found)


@given(st.integers(0, 2**32))
@settings(max_examples=60)
def test_answers_to_tiny_problems_are_legal_and_not_below_the_optimum(seed: int) -> None:
    problem = exhaustive.tiny(seed)
    price, faults = answer(problem)
    assert faults == []
    assert price >= exhaustive.optimum(problem)


def test_most_answers_to_tiny_problems_are_the_cheapest() -> None:
    problems = [exhaustive.tiny(seed) for seed in range(60)]
    prices = [(answer(problem)[0], exhaustive.optimum(problem)) for problem in problems]
    assert sum(price == best for price, best in prices) > len(prices) // 2
    assert sum(price for price, _ in prices) <= 2 * sum(best for _, best in prices)
