"""Faults of the Linode API while nodes are launched: never two instances for one NodeClaim, spend bounded.

Sources: spec/anchors.md 3.2, spec/user-cases.md U83, U84, U92, U93, U97, spec/linode-provider.md 4.8 and 8.2.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from karpenter_linode.linode.errors import LinodeApiError
from karpenter_linode.linode.governor import Limit, Limits
from karpenter_linode.linode.http import ClientOptions
from karpenter_linode.ports import CloudError, CreateError, InsufficientCapacityError
from karpenter_linode.sim.linode.delays import LinodeDelays
from karpenter_linode.sim.linode.limits import Bucket, RateLimits

if TYPE_CHECKING:
    from collections.abc import Callable

POOLS = "/lke/clusters/[0-9]+/pools"
POOL = "/lke/clusters/[0-9]+/pools/[0-9]+"
INSTANCE = "/linode/instances/[0-9]+"
TIERS = pytest.mark.parametrize("tier", ["standard", "enterprise"])


async def until_launched(lab: Any, provider: Any, claim: Any, tries: int = 20) -> Any:
    """Call ``create`` as the launch controller does, with its back-off."""
    for attempt in range(tries):
        try:
            return await provider.create(claim)
        except CloudError:
            await lab.clock.sleep(min(60, 2**attempt))
    raise AssertionError(f"NodeClaim {claim.name} was never launched")


@TIERS
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", POOLS),
        ("PUT", POOL),
        ("PUT", INSTANCE),
        ("GET", POOLS),
        ("GET", INSTANCE),
        ("GET", "/linode/instances"),
    ],
)
@pytest.mark.parametrize("fault", ["lose_answer", "refuse_connection", "late", "500", "503", "408", "429", "html 502"])
def test_a_call_that_fails_once_costs_time_but_no_second_instance(
    linode_story: Callable[..., Any], tier: str, method: str, path: str, fault: str
) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        await provider.create(lab.claim("first"))
        match fault:
            case "lose_answer":
                lab.faults.lose_answer(method, path)
            case "refuse_connection":
                lab.faults.refuse_connection(method, path)
            case "late":
                lab.faults.carry_out_late(method, path, 8)
            case "html 502":
                lab.faults.fail(method, path, 502, "")
            case status:
                lab.faults.fail(method, path, int(status), "Please try again")
        plan = "g6-standard-4" if method == "POST" else "g6-standard-2"
        launched = await until_launched(lab, provider, lab.claim("second", (plan,)))
        assert launched.instance_type == plan
        await lab.clock.sleep(900)
        assert len(lab.machines()) == 2

    linode_story(story, tier=tier)


@TIERS
@pytest.mark.parametrize("tags_late", [0, 2])
def test_a_crash_at_any_call_of_create_leaves_one_instance_after_the_restart(
    linode_story: Callable[..., Any], tier: str, tags_late: int
) -> None:
    """The process dies just before, or just after, its n-th call; a new one goes on. For every n."""

    def crashing_story(call_number: int, *, carried_out: bool) -> Any:
        async def story(lab: Any) -> Any:
            lab.faults.tag_reads_until_visible = tags_late
            provider = await lab.provider()
            seen, crashed = 0, asyncio.Event()

            def count(method: str, path: str) -> None:
                nonlocal seen
                seen += 1
                if seen == call_number:
                    crashed.set()
                    if carried_out:
                        lab.faults.lose_answer(method, ".*")
                    else:
                        lab.faults.refuse_connection(method, ".*")

            lab.faults.before_call = count
            creation = asyncio.ensure_future(provider.create(lab.claim("a")))
            waiting = asyncio.ensure_future(crashed.wait())
            await asyncio.wait((creation, waiting), return_when=asyncio.FIRST_COMPLETED)
            lab.faults.before_call = None
            reached = crashed.is_set()
            waiting.cancel()
            if reached:
                await asyncio.sleep(0.6)  # the call is carried out, its answer finds nobody
                creation.cancel()
                await provider.close()
                lab.faults.rules.clear()
            else:
                await creation
            launched = await until_launched(lab, await lab.provider(), lab.claim("a"))
            await lab.clock.sleep(900)
            assert [f"linode://{machine.id}" for machine in lab.machines()] == [launched.provider_id]
            return reached

        return story

    for carried_out in (False, True):
        number = 1
        while linode_story(crashing_story(number, carried_out=carried_out), tier=tier):
            number += 1
        assert number > 8, "create makes several calls, each of which was cut short once"


def test_an_answer_lost_for_longer_than_the_deadline_is_found_by_the_next_attempt(
    linode_story: Callable[..., Any],
) -> None:
    async def story(lab: Any) -> Any:
        lab.options = replace(lab.options, create_deadline=20)
        provider = await lab.provider()
        lab.faults.lose_answer("POST", POOLS)
        lab.faults.fail("GET", POOLS, 503, times=40, skip=1)
        with pytest.raises(CloudError):
            await provider.create(lab.claim("a"))
        lab.faults.rules.clear()
        await provider.create(lab.claim("a"))
        await lab.clock.sleep(300)
        assert len(lab.machines()) == len(lab.pools) == 1

    linode_story(story)


def test_a_write_that_lands_minutes_late_leaves_a_member_that_can_be_collected(
    linode_story: Callable[..., Any],
) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        lab.faults.carry_out_late("POST", POOLS, 240)
        launched = await until_launched(lab, provider, lab.claim("a"))
        await lab.clock.sleep(600)
        listed = await provider.list()
        unclaimed = [item for item in listed if not item.node_claim]
        assert len(listed) == 2
        assert len(unclaimed) == 1, "the late one is visible, and claimed by nobody"
        await provider.delete(unclaimed[0].provider_id)
        await lab.clock.sleep(60)
        assert [f"linode://{machine.id}" for machine in lab.machines()] == [launched.provider_id]
        assert len(lab.pools) == 1

    linode_story(story)


def test_one_scale_up_for_a_node_claim_across_deadlines_and_requeues(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        lab.options = replace(lab.options, create_deadline=10, provisioning_timeout=10_000)
        provider = await lab.provider()
        await provider.create(lab.claim("first"))
        lab.faults.stuck_members = 1
        for _ in range(10):
            with pytest.raises(CreateError) as caught:
                await provider.create(lab.claim("second"))
            assert caught.value.reason == "NodePoolProvisioning"
            assert "Timed out waiting for LKE instance to become available" in str(caught.value)
        assert len(lab.pools[0].members) == 2

    linode_story(story)


def test_a_lag_of_a_minute_in_the_list_of_members_adds_no_third_node(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        await asyncio.gather(provider.create(lab.claim("a")), provider.create(lab.claim("b")))
        await lab.clock.sleep(300)
        assert len(lab.machines()) == 2

    slow = {"enterprise_listing": (60.0, 60.0), "enterprise_instance": (50.0, 55.0)}
    linode_story(story, tier="enterprise", delays=LinodeDelays(**slow))


@TIERS
@pytest.mark.parametrize("reads", [1, 3, 6])
def test_tags_that_show_late_never_give_one_instance_to_two(
    linode_story: Callable[..., Any], tier: str, reads: int
) -> None:
    async def story(lab: Any) -> Any:
        lab.faults.tag_reads_until_visible = reads
        provider = await lab.provider()
        claims = [lab.claim(f"a-{i}") for i in range(6)]
        launched = await asyncio.gather(*(until_launched(lab, provider, claim) for claim in claims))
        await lab.clock.sleep(300)
        assert len({item.provider_id for item in launched}) == 6
        assert len(lab.machines()) == 6

    linode_story(story, tier=tier)


def test_an_instance_whose_tag_does_not_show_yet_is_not_given_to_the_next_node_claim(
    linode_story: Callable[..., Any],
) -> None:
    async def story(lab: Any) -> None:
        lab.faults.tag_reads_until_visible = 12
        provider = await lab.provider()
        first = asyncio.ensure_future(until_launched(lab, provider, lab.claim("a")))
        await lab.clock.sleep(8)
        assert not first.done()
        second = await until_launched(lab, provider, lab.claim("b"))
        assert (await first).provider_id != second.provider_id
        assert len(lab.machines()) == 2

    linode_story(story)


def test_a_node_claim_comes_back_to_the_instance_that_was_set_aside_for_it(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> None:
        lab.options = replace(lab.options, create_deadline=8)
        lab.faults.tag_reads_until_visible = 30
        provider = await lab.provider()
        with pytest.raises(CreateError, match="timed out verifying tags on instance"):
            await provider.create(lab.claim("a"))
        await until_launched(lab, provider, lab.claim("a"))
        await lab.clock.sleep(300)
        assert len(lab.machines()) == 1

    linode_story(story)


def test_a_member_that_somebody_claims_in_the_last_moment_is_left_to_them(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> None:
        provider = await lab.provider()
        await provider.create(lab.claim("a"))
        await lab.client().update_pool(lab.cluster_id, lab.pools[0].id, {"count": 2})
        await lab.clock.sleep(30)
        spare = next(machine for machine in lab.machines() if not machine.tags)
        reads = 0

        def take_it(method: str, path: str) -> None:
            nonlocal reads
            reads += (method, path) == ("GET", f"/linode/instances/{spare.id}")
            if reads == 2 and not spare.tags:  # the view shows it free, then the claim reads it
                spare.tags = ("karpenter.sh/nodeclaim=foreign",)

        lab.faults.before_call = take_it
        launched = await provider.create(lab.claim("b"))
        assert launched.provider_id != f"linode://{spare.id}"
        assert "karpenter.sh/nodeclaim=foreign" in spare.tags

    linode_story(story)


def test_a_node_claim_stays_with_the_plan_that_may_have_been_bought_for_it(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> None:
        lab.options = replace(lab.options, create_deadline=20, availability_ttl=0)
        provider = await lab.provider()
        claim = lab.claim("a", ("g6-standard-2", "g6-standard-4"))
        lab.faults.lose_answer("POST", POOLS)
        lab.faults.fail("GET", POOLS, 503, times=40, skip=1)
        with pytest.raises(CloudError):
            await provider.create(claim)
        lab.faults.rules.clear()
        lab.faults.unavailable.add(("g6-standard-2", "us-ord"))
        assert (await provider.create(claim)).instance_type == "g6-standard-2"
        assert len(lab.machines()) == 1

    linode_story(story)


def test_sold_out_on_creation_marks_that_plan_only_and_the_next_is_taken(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        plans = ("g2-gpu-rtx4000a1-s", "g2-gpu-rtx4000a1-m")
        lab.faults.sold_out.add((plans[0], "us-ord"))
        provider = await lab.provider()
        with pytest.raises(InsufficientCapacityError, match="g2-gpu-rtx4000a1-s"):
            await provider.create(lab.claim("a", plans))
        offered = {item.name: item.offerings[0].available for item in await provider.instance_types(lab.node_pool())}
        assert [name for name, available in offered.items() if not available] == [plans[0]]
        assert (await provider.create(lab.claim("b", plans))).instance_type == plans[1]
        await lab.clock.sleep(181)
        lab.faults.sold_out.clear()
        assert (await provider.create(lab.claim("c", plans))).instance_type == plans[0]

    linode_story(story)


def test_sold_out_on_scaling_goes_to_the_next_plan_too(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        plans = ("g6-standard-2", "g6-standard-4")
        provider = await lab.provider()
        await provider.create(lab.claim("a", plans))
        lab.faults.sold_out.add((plans[0], "us-ord"))
        with pytest.raises(InsufficientCapacityError):
            await provider.create(lab.claim("b", plans))
        assert (await provider.create(lab.claim("c", plans))).instance_type == plans[1]

    linode_story(story)


def test_members_that_get_no_instance_are_handed_back_and_count_as_sold_out(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        await provider.create(lab.claim("a"))
        lab.faults.stuck_members = 1
        with pytest.raises(CreateError):
            await provider.create(lab.claim("b"))
        with pytest.raises(InsufficientCapacityError, match="got no instance"):
            await provider.create(lab.claim("b"))
        assert len(lab.pools[0].members) == 1
        lab.faults.stuck_members = 1
        with pytest.raises(CreateError):
            await provider.create(lab.claim("c", ("g6-standard-4",)))
        with pytest.raises(InsufficientCapacityError):
            await provider.create(lab.claim("c", ("g6-standard-4",)))
        assert len(lab.pools) == 1, "a pool of nothing but stuck members goes"

    linode_story(story)


def test_where_there_is_capacity_for_some_those_are_bought(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        room = 3

        def shrink(method: str, path: str) -> None:
            members = sum(len(pool.members) for pool in lab.pools)
            if members >= room:
                lab.faults.sold_out.add(("g6-standard-2", "us-ord"))

        lab.faults.before_call = shrink
        outcomes = await asyncio.gather(
            *(provider.create(lab.claim(f"a-{i}")) for i in range(4)),
            return_exceptions=True,
        )
        return outcomes, len(lab.machines())

    outcomes, machines = linode_story(story)
    launched = [item for item in outcomes if not isinstance(item, Exception)]
    assert len(launched) == machines


def test_the_account_limit_is_not_sold_out_and_rests_the_whole_region(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        await provider.create(lab.claim("a"))
        lab.faults.account_limit = 1
        with pytest.raises(InsufficientCapacityError, match="Account Limit reached"):
            await provider.create(lab.claim("b"))
        assert [event[2] for event in lab.notebook.events] == ["AccountLimitReached"]
        writes = lab.writes(provider._tools.client)
        for minute in range(14):
            with pytest.raises(InsufficientCapacityError):
                await provider.create(lab.claim(f"c-{minute}", ("g6-standard-4",)))
            await lab.clock.sleep(60)
        assert lab.writes(provider._tools.client) == writes, "nothing is even tried"
        lab.faults.account_limit = None
        await lab.clock.sleep(61)
        await provider.create(lab.claim("d"))

    linode_story(story)


@pytest.mark.parametrize("status", [401, 403])
def test_a_token_without_rights_is_a_create_error_with_its_reason(
    linode_story: Callable[..., Any], status: int
) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        lab.faults.fail("POST", POOLS, status, "Your OAuth token is not authorized", times=9)
        with pytest.raises(CreateError, match="not authorized") as caught:
            await provider.create(lab.claim("a"))
        return caught.value.reason

    assert linode_story(story) == "Unauthorized"


def test_a_refused_field_is_told_and_marks_nothing(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        with pytest.raises(CreateError, match=r"Failed to find or create LKE node pool: .*taints: ") as caught:
            await provider.create(lab.claim("a", taints=[("k", "v" * 64, "NoSchedule")]))
        assert caught.value.reason == "NodePoolCreationFailed"
        assert all(item.offerings[0].available for item in await provider.instance_types(lab.node_pool()))

    linode_story(story)


def test_an_error_of_the_first_lookup_surfaces_and_buys_nothing(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        lab.faults.fail("GET", "/linode/instances", 500, times=4)
        with pytest.raises(LinodeApiError, match="GET /linode/instances: 500"):
            await provider.create(lab.claim("a"))
        assert not lab.pools

    linode_story(story)


def test_persistent_failure_of_creation_is_reported_and_rests_the_region(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        lab.faults.fail("POST", POOLS, 503, times=1000)
        with pytest.raises(CreateError, match="503") as caught:
            await provider.create(lab.claim("a"))
        assert caught.value.reason == "NodePoolProvisioning"
        assert not lab.pools
        offered = await provider.instance_types(lab.node_pool())
        return any(item.offerings[0].available for item in offered)

    assert linode_story(story) is False


def test_429_waits_as_told_and_marks_nothing(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        lab.faults.fail("POST", POOLS, 429, "Too many requests", times=2, headers={"Retry-After": "20"})
        before = lab.clock.now()
        await provider.create(lab.claim("a"))
        waited = (lab.clock.now() - before).total_seconds()
        assert 40 <= waited < 70
        assert all(item.offerings[0].available for item in await provider.instance_types(lab.node_pool()))

    linode_story(story)


def test_an_endless_429_ends_as_rate_limited(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        lab.faults.fail("POST", POOLS, 429, "Too many requests", times=1000, headers={"Retry-After": "-5"})
        with pytest.raises(CreateError) as caught:
            await provider.create(lab.claim("a"))
        return caught.value.reason

    assert linode_story(story) == "RateLimited"


def test_a_hundred_node_claims_in_twenty_pools_stay_below_the_write_limit(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        lab.options = replace(lab.options, create_deadline=600)
        provider = await lab.provider()
        claims = [lab.claim(f"a-{i}", extra_labels={"group": f"g{i % 20}"}) for i in range(100)]
        await asyncio.gather(*(provider.create(claim) for claim in claims))
        assert len(lab.machines()) == 100
        assert len(lab.pools) == 20
        calls = provider._tools.client.calls
        assert calls["POST /lke/clusters/{cluster}/pools", 429] == 0

    strict = RateLimits(create=Bucket(5, 15))
    options = ClientOptions(limits=Limits(create=Limit(5, 15)))
    linode_story(story, limits=strict, client_options=options)


def test_a_rate_limit_that_was_not_known_is_waited_out_without_duplicates(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        lab.options = replace(lab.options, create_deadline=900)
        provider = await lab.provider()
        claims = [lab.claim(f"a-{i}", extra_labels={"group": f"g{i % 20}"}) for i in range(40)]
        await asyncio.gather(*(provider.create(claim) for claim in claims))
        assert len(lab.machines()) == 40
        assert provider._tools.client.calls["POST /lke/clusters/{cluster}/pools", 429] > 0

    options = ClientOptions(limits=Limits(create=Limit(1000, 1)))
    linode_story(story, limits=RateLimits(create=Bucket(3, 15)), client_options=options)


def test_an_instance_that_the_controller_loses_is_replaced_by_lke_and_listed_as_unclaimed(
    linode_story: Callable[..., Any],
) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        await provider.create(lab.claim("a"))
        lab.world.delete_machine(lab.machines()[0])
        await lab.clock.sleep(120)
        (listed,) = await provider.list()
        assert listed.node_claim == ""

    linode_story(story)


def test_equal_seeds_give_equal_histories(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> Any:
        provider = await lab.provider()
        lab.faults.lose_answer("POST", POOLS)
        await asyncio.gather(*(provider.create(lab.claim(f"a-{i}")) for i in range(5)))
        await lab.clock.sleep(300)
        return lab.cloud_events, sorted(provider._tools.client.calls.items())

    assert linode_story(story) == linode_story(story)
