"""Against the cheapest legal answer of tiny problems: never illegal, never "cheaper", and how far off at most."""

from __future__ import annotations

from typing import Any

import run_vectors
import scheduling_judge
import scheduling_optimum
from hypothesis import given, settings
from hypothesis import strategies as st

ENDLESS = 10**6


def answer(problem: dict[str, Any]) -> tuple[int, list[str]]:
    """The price of our answer and what is illegal about it."""
    row = {"id": "tiny", "problem": problem, "outcome": {"errors": {}, "newNodeClaims": [], "price": ENDLESS}}
    found = run_vectors.answer_scheduling(row)
    return round(sum(claim["cheapest"]["price"] for claim in found["newNodeClaims"])), scheduling_judge.judge(
        row, found
    )


@given(st.integers(0, 2**32))
@settings(max_examples=60)
def test_answers_to_tiny_problems_are_legal_and_not_below_the_optimum(seed: int) -> None:
    problem = scheduling_optimum.tiny(seed)
    price, faults = answer(problem)
    assert faults == []
    assert price >= scheduling_optimum.optimum(problem)


def test_most_answers_to_tiny_problems_are_the_cheapest() -> None:
    problems = [scheduling_optimum.tiny(seed) for seed in range(60)]
    prices = [(answer(problem)[0], scheduling_optimum.optimum(problem)) for problem in problems]
    assert sum(price == best for price, best in prices) > len(prices) // 2
    assert sum(price for price, _ in prices) <= 2 * sum(best for _, best in prices)
