"""What an API error means: spec/linode-provider.md 4.8, as a table."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from karpenter_linode.linode.classify import Classifier, Verdict
from karpenter_linode.linode.errors import (
    FieldError,
    LinodeApiError,
    LinodeBusyError,
    LinodeInvalidError,
    LinodeNotFoundError,
    LinodeRateLimitedError,
    LinodeServerError,
    LinodeTransportError,
    LinodeUnauthorizedError,
)
from karpenter_linode.linode.unavailable import UnavailableOfferings
from karpenter_linode.sim.clock import VirtualClock
from karpenter_linode.sim.loop import run_virtual

ROUTE = "POST /lke/clusters/{cluster}/pools"


def _invalid(reason: str, field: str = "") -> LinodeApiError:
    return LinodeInvalidError(ROUTE, 400, (FieldError(reason, field),))


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (_invalid("Insufficient capacity for instance type g6-standard-2 in region us-ord"), Verdict.SOLD_OUT),
        (_invalid("This plan is currently unavailable.", "type"), Verdict.SOLD_OUT),
        (_invalid("plan is unavailable in this region"), Verdict.SOLD_OUT),
        (_invalid("insufficient capacity of characters", "tags"), Verdict.INVALID),
        (_invalid("Length must be 3-50 characters", "tags"), Verdict.INVALID),
        (_invalid("firewall not found", "firewall_id"), Verdict.INVALID),
        (_invalid("Account Limit reached. Please open a support ticket."), Verdict.ACCOUNT_LIMIT),
        (LinodeInvalidError(ROUTE, 400, ()), Verdict.INVALID),
        (LinodeBusyError(ROUTE, 400, (FieldError("Linode busy."),)), Verdict.RETRY),
        (LinodeRateLimitedError(ROUTE, 429), Verdict.RATE_LIMITED),
        (LinodeUnauthorizedError(ROUTE, 401), Verdict.UNAUTHORIZED),
        (LinodeUnauthorizedError(ROUTE, 403), Verdict.UNAUTHORIZED),
        (LinodeNotFoundError(ROUTE, 404), Verdict.GONE),
        (LinodeServerError(ROUTE, 408), Verdict.RETRY),
        (LinodeServerError(ROUTE, 503), Verdict.RETRY),
        (LinodeTransportError(ROUTE, "dropped"), Verdict.RETRY),
    ],
)
def test_every_error_has_its_verdict(error: LinodeApiError, verdict: Verdict) -> None:
    assert Classifier().verdict(error) is verdict


def test_capacity_texts_are_a_setting() -> None:
    error = _invalid("keine Maschinen mehr")
    assert Classifier().verdict(error) is Verdict.INVALID
    assert Classifier(capacity=("keine Maschinen",)).verdict(error) is Verdict.SOLD_OUT


class _Silent:
    def debug(self, event: str, **fields: Any) -> None:
        """Say nothing."""

    info = warning = error = debug


def test_marks_end_by_themselves_and_move_the_sequence() -> None:
    async def main() -> None:
        clock = VirtualClock(asyncio.get_running_loop(), datetime(2026, 1, 1, tzinfo=UTC))
        marks = UnavailableOfferings(clock, _Silent(), "us-ord")
        plans = ("a", "b")
        assert marks.among(plans) == frozenset()
        before = marks.sequence
        marks.mark("a", "sold out")
        assert marks.among(plans) == {"a"}
        assert marks.sequence > before
        marks.mark_region("account", timedelta(minutes=15))
        assert marks.among(plans) == {"a", "b"}
        await clock.sleep(180)
        before = marks.sequence
        await clock.sleep(720)
        assert marks.among(plans) == frozenset()
        assert marks.sequence > before

    run_virtual(main())


def test_a_mark_renewed_lasts_from_the_later_one() -> None:
    async def main() -> None:
        clock = VirtualClock(asyncio.get_running_loop(), datetime(2026, 1, 1, tzinfo=UTC))
        marks = UnavailableOfferings(clock, _Silent(), "us-ord")
        marks.mark("a", "long", timedelta(minutes=10))
        marks.mark("a", "short", timedelta(minutes=1))
        await clock.sleep(500)
        assert marks.among(("a",)) == {"a"}

    run_virtual(main())
