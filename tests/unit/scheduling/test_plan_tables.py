from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.model import codec
from karpenter_linode.scheduling import PlanTables, solve
from karpenter_linode.scheduling.plans import Plan

NONE: frozenset[str] = frozenset()


def test_one_catalog_is_read_once(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, tables = make.problem([make.pod(requests={"cpu": "1"})]), PlanTables()
    first = solve(problem, tables)
    monkeypatch.setattr(Plan, "__init__", lambda *_: pytest.fail("read again"))
    assert codec.encode(solve(problem, tables)) == codec.encode(first)


def test_limits_and_open_claims_are_not_carried_over(make: Any) -> None:
    tables = PlanTables()
    problem = make.problem([make.pod(requests={"cpu": "3"}) for _ in range(3)], pools=[make.pool(limits={"cpu": "8"})])
    expected = codec.encode(solve(problem))
    assert [codec.encode(solve(problem, tables)) for _ in range(3)] == [expected] * 3


def test_the_catalog_that_was_not_asked_for_the_longest_goes_first(make: Any) -> None:
    tables = PlanTables(catalogs=2)
    one, two, three = ((make.plan(name),) for name in ("a", "b", "c"))
    read = [tables.plan_set(types, NONE) for types in (one, two)]
    assert tables.plan_set(one, NONE) is read[0]
    tables.plan_set(three, NONE)
    assert len(tables) == 2
    assert tables.plan_set(one, NONE) is read[0]
    assert tables.plan_set(two, NONE) is not read[1]


def test_a_catalog_that_learnt_too_much_is_read_anew(make: Any) -> None:
    tables, types = PlanTables(findings=3), (make.plan("a"), make.plan("b"))
    plans = tables.plan_set(types, NONE)
    for mask in (1, 2):
        plans.subset(mask).sources(1)
    assert tables.plan_set(types, NONE) is not plans
    plans = tables.plan_set(types, NONE)
    plans.subset(1).sources(1)
    assert tables.plan_set(types, NONE) is plans
    for mask in (1, 2):
        plans.sources(mask)
    assert tables.plan_set(types, NONE) is not plans


def test_equal_catalogs_are_told_apart_by_the_well_known_labels(make: Any) -> None:
    tables, types = PlanTables(), (make.plan("a"),)
    assert tables.plan_set(types, NONE) is not tables.plan_set(types, frozenset({"size"}))
