"""What a lane decides: spec/linode-provider.md 4.3, 4.8 and 4.9."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karpenter_linode.linode import lane_plan, tags
from karpenter_linode.linode.classify import Verdict
from karpenter_linode.linode.cluster_view import ClusterView
from karpenter_linode.linode.errors import FieldError, LinodeApiError, LinodeInvalidError, LinodeRateLimitedError
from karpenter_linode.linode.lane_plan import HandBack, Rests
from karpenter_linode.model.karpenter import NodeClaim
from karpenter_linode.model.linode import LinodeInstance, LKENode, LKEPool
from karpenter_linode.model.meta import ObjectMeta
from karpenter_linode.ports import CreateError, InsufficientCapacityError

NOW = datetime(2026, 1, 1, tzinfo=UTC)
QUIET, LONGEST = timedelta(seconds=0.1), timedelta(seconds=0.5)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def instance(number: int, *claims: str, status: str = "running") -> LinodeInstance:
    return LinodeInstance(number, status=status, tags=tuple(tags.claim_tag(name) for name in claims))


@pytest.mark.parametrize(
    ("joined", "left"),
    [
        ([], 0.0),
        ([0.0], 0.1),
        ([0.04], 0.06),
        ([0.1], 0.0),
        ([0.3, 0.02], 0.08),
        ([0.45, 0.02], 0.05),  # the first one has waited almost as long as it may
        ([0.5, 0.0], 0.0),
        ([0.7, 0.0], -0.2),
    ],
)
def test_it_gathers_until_nobody_comes_or_the_first_has_waited_enough(joined: list[float], left: float) -> None:
    waited = lane_plan.gathering([ago(seconds) for seconds in joined], NOW, QUIET, LONGEST)
    assert waited == timedelta(seconds=left)


def test_a_clock_that_was_set_back_is_not_waited_for() -> None:
    assert lane_plan.gathering([NOW + timedelta(hours=1), NOW + timedelta(hours=2)], NOW, QUIET, LONGEST) == timedelta()


def test_what_was_built_for_a_node_claim_is_found_by_its_exact_tag_oldest_first() -> None:
    machines = (instance(7, "a"), instance(3, "a"), instance(1, "a", status="deleting"), instance(2, "ab"), instance(4))
    view = ClusterView(instances={item.id: item for item in machines})
    assert [item.id for item in lane_plan.built_for(view, "a")] == [3, 7]
    assert lane_plan.built_for(view, "b") == ()


def test_members_go_to_who_holds_them_then_to_their_claims_then_to_who_came_first() -> None:
    members = (instance(1), instance(2, "second"), instance(3), instance(4, status="deleting"), instance(5))
    waiting = {"first": None, "second": None, "holder": 3, "late": 99, "last": None}
    given_to = lane_plan.assign(waiting, members, lambda item: not item.tags)
    assert given_to == {"holder": 3, "second": 2, "first": 1, "late": 5}


def test_what_the_ledger_gives_to_others_is_not_free() -> None:
    assert lane_plan.assign({"a": None}, (instance(1), instance(2)), lambda item: item.id != 1) == {"a": 2}
    assert lane_plan.assign({"a": None}, (instance(1),), lambda _: False) == {}


@given(
    st.lists(st.sampled_from(["", "a", "b", "c", "foreign"]), max_size=8),
    st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), st.none() | st.integers(0, 9)),
    st.sets(st.integers(0, 7)),
)
def test_no_member_that_serves_somebody_else_is_given_away(
    owners: list[str], held: dict[str, int | None], taken: set[int]
) -> None:
    members = tuple(instance(number, *([owner] if owner else [])) for number, owner in enumerate(owners))
    # The ledger holds one instance for each NodeClaim and one NodeClaim for each instance, and never against a tag.
    seen: set[int] = set()
    waiting: dict[str, int | None] = {}
    for name, number in held.items():
        owner = owners[number] if number is not None and number < len(owners) else ""
        fits = number is not None and number not in seen and owner in {"", name}
        waiting[name] = number if fits else None
        seen |= {number} if fits and number is not None else set()
    found = lane_plan.assign(waiting, members, lambda item: not item.tags and item.id not in taken)
    assert set(found) <= set(waiting)
    for name, number in found.items():
        assert owners[number] in {"", name}
        assert number == waiting[name] or owners[number] == name or number not in taken
    unclaimed = [number for number in found.values() if not owners[number]]
    assert len(unclaimed) == len(set(unclaimed))


def test_what_is_on_its_way_is_not_bought_again() -> None:
    full = LKEPool(1, count=2, nodes=(LKENode("1-a", 11), LKENode("1-b", 12)))
    growing = LKEPool(2, count=5, nodes=(LKENode("2-a", 21), LKENode("2-b")))
    view = ClusterView(
        (full, growing), {number: instance(number) for number in (11, 12, 21)}, {11: 1, 12: 1, 21: 2}, {}
    )
    assert lane_plan.missing(view, view.pools, 6) == 2
    assert lane_plan.missing(view, view.pools, 4) == 0
    assert lane_plan.missing(view, (full,), 3) == 3


def test_a_pool_with_more_members_than_its_count_owes_nothing_and_lends_nothing() -> None:
    shrinking = LKEPool(1, count=1, nodes=(LKENode("1-a", 11), LKENode("1-b", 12)))
    view = ClusterView((shrinking,), {11: instance(11), 12: instance(12)}, {11: 1, 12: 1}, {})
    assert lane_plan.missing(view, view.pools, 2) == 2


def test_members_without_an_instance_for_too_long_are_handed_back_and_an_empty_pool_with_them() -> None:
    pools = (
        LKEPool(1, count=2, nodes=(LKENode("1-a", 11), LKENode("1-b"))),
        LKEPool(2, count=2, nodes=(LKENode("2-a"), LKENode("2-b"))),
        LKEPool(3, count=1, nodes=(LKENode("3-a"),)),
        LKEPool(4, count=3, nodes=(LKENode("4-a"), LKENode("4-b"))),
    )
    since = {"1-b": ago(180), "2-a": ago(500), "2-b": ago(200), "3-a": ago(179), "4-a": ago(900), "4-b": ago(900)}
    found = lane_plan.stuck(ClusterView(pools, waiting_since=since), pools, NOW, timedelta(seconds=180))
    assert found == (
        HandBack(1, ("1-b",), whole=False),
        HandBack(2, ("2-a", "2-b"), whole=True),
        HandBack(4, ("4-a", "4-b"), whole=False),
    )


def test_only_what_is_older_than_this_process_may_have_been_bought_by_the_one_before() -> None:
    def made(moment: datetime | None) -> NodeClaim:
        return NodeClaim(metadata=ObjectMeta(name="a", creation_timestamp=moment))

    assert lane_plan.any_older([made(ago(-1)), made(NOW)], NOW)
    assert not lane_plan.any_older([made(ago(-1)), made(None)], NOW)
    assert not lane_plan.any_older([], NOW)


REFUSED = LinodeInvalidError("POST /x", 400, (FieldError("no"),))


@pytest.mark.parametrize(
    ("verdict", "kind", "rests", "said"),
    [
        (Verdict.SOLD_OUT, InsufficientCapacityError, Rests.PLAN, "plan g6 is not available in region us-ord: "),
        (Verdict.ACCOUNT_LIMIT, InsufficientCapacityError, Rests.ACCOUNT, "POST /x"),
        (Verdict.UNAUTHORIZED, CreateError, Rests.NOTHING, "POST /x"),
        (Verdict.INVALID, CreateError, Rests.NOTHING, "Failed to find or create LKE node pool: "),
    ],
)
def test_an_error_that_ends_the_waiting_says_how_and_what_rests(
    verdict: Verdict, kind: type[Exception], rests: Rests, said: str
) -> None:
    refused = lane_plan.refusal(verdict, REFUSED, "g6", "us-ord")
    assert refused is not None
    assert type(refused.told) is kind
    assert (refused.rests, refused.why) == (rests, str(REFUSED))
    assert said in str(refused.told)


@pytest.mark.parametrize("verdict", [Verdict.RATE_LIMITED, Verdict.GONE, Verdict.RETRY])
def test_other_errors_are_waited_out(verdict: Verdict) -> None:
    assert lane_plan.refusal(verdict, REFUSED, "g6", "us-ord") is None


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        (None, "NodePoolProvisioning"),
        (LinodeApiError("GET /x", 500, ()), "NodePoolProvisioning"),
        (LinodeRateLimitedError("GET /x", 429, (), 5), "RateLimited"),
    ],
)
def test_whose_time_ran_out_is_told_what_was_met_last(last: LinodeApiError | None, reason: str) -> None:
    error = lane_plan.too_late(last)
    assert error.reason == reason
    assert str(error).startswith("Timed out waiting for LKE instance to become available")
    assert last is None or str(last) in str(error)
