"""Amounts, names and tables."""

from __future__ import annotations

import pytest

from karpenter_linode.explain.text import counted, dollars, money, names, table


@pytest.mark.parametrize(
    ("nano", "text"),
    [
        (0, "$0.00"),
        (520_000_000, "$0.52"),
        (7_500_000, "$0.0075"),
        (3_000_000_000, "$3.00"),
        (1, "$0.000000001"),
        (12_340_000_000, "$12.34"),
        (-520_000_000, "-$0.52"),
    ],
)
def test_money_is_exact_and_shows_cents_at_least(nano: int, text: str) -> None:
    assert money(nano) == text
    assert dollars(nano) == text.replace("$", "")


def test_names_are_cut_short_but_never_by_one() -> None:
    assert names(["a", "b"]) == "a, b"
    assert names(list("abcdef")) == "a, b, c, d, e, f"
    assert names(list("abcdefg")) == "a, b, c, d, e and 2 others"


def test_counted() -> None:
    assert [counted(1, "pod"), counted(2, "pod"), counted(0, "pod")] == ["1 pod", "2 pods", "0 pods"]


def test_columns_are_as_wide_as_their_widest_cell_and_lines_have_no_trailing_space() -> None:
    lines = table(("A", "LONG", "C"), [("xxx", "y", ""), ("x", "y", "z")])
    assert [line.text for line in lines] == ["A    LONG  C", "xxx  y", "x    y     z"]
    assert lines[0].kind == "title"
