from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from karpenter_linode.disruption.budgets import (
    UNLIMITED,
    BudgetError,
    allowed_by,
    allowed_disruptions,
    pool_budgets,
)
from karpenter_linode.disruption.schedule import ScheduleError, parse_schedule
from karpenter_linode.model.karpenter import Budget


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "after", "hit"),
    [
        ("0 9 * * *", "2026-01-01T08:59:59", "2026-01-01T09:00:00"),
        ("0 9 * * *", "2026-01-01T09:00:00", "2026-01-02T09:00:00"),
        ("*/15 * * * *", "2026-01-01T09:46:00", "2026-01-01T10:00:00"),
        ("0 0 1 1 *", "2026-01-01T00:00:00", "2027-01-01T00:00:00"),
        ("@weekly", "2026-01-01T00:00:00", "2026-01-04T00:00:00"),
        ("0 9 * * mon-fri", "2026-01-02T09:00:00", "2026-01-05T09:00:00"),
        ("30 8-10/2 * FEB *", "2026-01-01T00:00:00", "2026-02-01T08:30:00"),
        ("0 0 13 * 5", "2026-01-01T12:00:00", "2026-01-02T00:00:00"),
        ("0 0 29 2 *", "2026-01-01T00:00:00", "2028-02-29T00:00:00"),
        ("5/20 * * * *", "2026-01-01T00:06:00", "2026-01-01T00:25:00"),
        ("@every 1h30m", "2026-01-01T00:00:00", "2026-01-01T01:30:00"),
    ],
)
def test_the_next_hit_is_strictly_after(schedule: str, after: str, hit: str) -> None:
    assert parse_schedule(schedule).hit_after(at(after)) == at(hit)


def test_a_day_that_never_comes_has_no_hit() -> None:
    assert parse_schedule("0 0 30 2 *").hit_after(at("2026-01-01T00:00:00")) is None


@pytest.mark.parametrize(
    "schedule",
    [
        "",
        "* * * *",
        "0 0 * * 7",
        "60 * * * *",
        "* 24 * * *",
        "a * * * *",
        "5-1 * * * *",
        "*/0 * * * *",
        "@every x",
        "@often",
    ],
)
def test_what_is_no_schedule_is_refused(schedule: str) -> None:
    with pytest.raises(ScheduleError):
        parse_schedule(schedule)


@pytest.fixture
def allowed(pool: Any, now: Any) -> Any:
    def count(*budgets: dict[str, Any], total: int = 10, reason: str = "Empty", moment: datetime | None = None) -> Any:
        made = pool(spec={"disruption": {"budgets": list(budgets)}})
        return allowed_disruptions(made, reason, total, moment or now)

    return count


def test_percentages_round_up_and_numbers_are_numbers(allowed: Any) -> None:
    assert allowed({"nodes": "10%"}, total=11) == (2, "")
    assert allowed({"nodes": "3"}) == (3, "")
    assert allowed({"nodes": "0"}) == (0, "")
    assert allowed({"nodes": "100%"}, total=7) == (7, "")


def test_the_strictest_budget_of_the_reason_counts(allowed: Any) -> None:
    budgets = [{"nodes": "5"}, {"nodes": "2", "reasons": ["Drifted"]}]
    assert allowed(*budgets)[0] == 5
    assert allowed(*budgets, reason="Drifted")[0] == 2
    assert allowed({"nodes": "0", "reasons": []})[0] == UNLIMITED
    assert allowed()[0] == UNLIMITED


def test_a_window_is_half_open_and_in_utc(allowed: Any) -> None:
    window = {"nodes": "0", "schedule": "0 9 * * *", "duration": "2h"}
    assert allowed(window, moment=at("2026-01-01T08:59:59"))[0] == UNLIMITED
    assert allowed(window, moment=at("2026-01-01T09:00:00"))[0] == 0
    assert allowed(window, moment=at("2026-01-01T10:59:59"))[0] == 0
    assert allowed(window, moment=at("2026-01-01T11:00:00"))[0] == UNLIMITED


def test_a_window_longer_than_its_period_never_ends(allowed: Any) -> None:
    assert allowed({"nodes": "1", "schedule": "@hourly", "duration": "2h"})[0] == 1


@pytest.mark.parametrize(
    "bad",
    [
        {"nodes": "many"},
        {"nodes": "-1"},
        {"nodes": "1", "schedule": "nonsense", "duration": "1h"},
        {"nodes": "1", "schedule": "@daily"},
        {"nodes": "1", "schedule": "0 0 * * 7", "duration": "1h", "reasons": ["Drifted"]},
    ],
)
def test_one_bad_budget_allows_nothing(allowed: Any, bad: Any) -> None:
    value, error = allowed({"nodes": "5"}, bad)
    assert value == 0
    assert error.startswith("invalid disruption budgets in nodepool gpu, ")


def test_a_day_that_never_comes_is_never_active(allowed: Any) -> None:
    assert allowed({"nodes": "0", "schedule": "0 0 30 2 *", "duration": "1h"})[0] == UNLIMITED


def test_what_counts_and_what_is_away_already(pool: Any, claim: Any, node: Any, cluster: Any, now: Any) -> None:
    def pair(
        name: str, conditions: dict[str, str] | None = None, labels: Any = None, ready: str = "True"
    ) -> tuple[Any, Any]:
        return (
            claim(conditions, metadata={"name": f"c-{name}", "uid": f"c-{name}"}, status={"providerID": name}),
            node(
                metadata={"name": name, "uid": name, "labels": labels or {}},
                spec={"providerID": name},
                status={"conditions": [{"type": "Ready", "status": ready}]},
            ),
        )

    pairs = [
        pair("fine"),
        pair("not-ready", ready="False"),
        pair("marked"),
        pair("terminating", {"Initialized": "True", "InstanceTerminating": "True"}),
        pair("starting", labels={"karpenter.sh/initialized": "false"}),
    ]
    state = cluster(*(item for both in pairs for item in both))
    state.mark_for_deletion("nodeclaim/c-marked")
    budget = pool_budgets(
        [pool(spec={"disruption": {"budgets": [{"nodes": "2"}]}})], state.state_nodes(now), "Empty", now
    )["gpu"]
    assert (budget.total, budget.disrupting, budget.remaining) == (3, 2, 0)
    later = now + timedelta(hours=1)
    generous = pool(spec={"disruption": {"budgets": [{"nodes": "100%"}]}})
    assert pool_budgets([generous], state.state_nodes(later), "Empty", later)["gpu"].remaining == 1


def test_endless_numbers_are_errors_of_the_field_that_holds_them() -> None:
    endless = "9" * 5000
    with pytest.raises(ScheduleError, match="minute"):
        parse_schedule(f"*/{endless} * * * *")
    with pytest.raises(BudgetError, match="nodes"):
        allowed_by(Budget(nodes=endless), 10, at("2026-01-01T00:00:00"))
