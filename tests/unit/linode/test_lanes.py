"""Who shares a call, and how long a lane is kept."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from karpenter_linode.ports import CloudError

if TYPE_CHECKING:
    from collections.abc import Callable

POOLS = "/lke/clusters/{cluster}/pools"
TIERS = pytest.mark.parametrize("tier", ["standard", "enterprise"])


def purchases(provider: Any) -> int:
    routes = {f"POST {POOLS}", f"PUT {POOLS}/{{pool}}"}
    return sum(count for (route, _), count in provider._tools.client.calls.items() if route in routes)


def looks(provider: Any) -> int:
    return int(provider._tools.client.calls[f"GET {POOLS}", 200])


@TIERS
def test_node_claims_that_trickle_in_are_bought_for_in_one_call(linode_story: Callable[..., Any], tier: str) -> None:
    async def story(lab: Any) -> None:
        provider = await lab.provider()

        async def later(number: int) -> Any:
            await lab.clock.sleep(number * 0.008)
            return await provider.create(lab.claim(f"a-{number}"))

        launched = await asyncio.gather(*map(later, range(50)))
        assert len({item.provider_id for item in launched}) == len(lab.machines()) == 50
        assert purchases(provider) == 1

    linode_story(story, tier=tier)


def test_a_node_claim_that_comes_while_others_are_bought_for_does_not_wait_for_the_next_look(
    linode_story: Callable[..., Any],
) -> None:
    async def story(lab: Any) -> float:
        lab.options = replace(lab.options, poll_interval=60, poll_cap=60)
        provider = await lab.provider()
        first = asyncio.ensure_future(provider.create(lab.claim("a")))
        while not purchases(provider):
            await lab.clock.sleep(0.01)
        came = lab.clock.now()
        second = asyncio.ensure_future(provider.create(lab.claim("b")))
        while purchases(provider) < 2:
            await lab.clock.sleep(0.01)
        waited = (lab.clock.now() - came).total_seconds()
        await asyncio.gather(first, second)
        assert len(lab.machines()) == 2
        return float(waited)

    assert linode_story(story) < 2


def test_one_look_serves_a_node_claim_from_the_search_to_the_purchase(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> None:
        provider = await lab.provider()
        launching = asyncio.ensure_future(provider.create(lab.claim("a")))
        while not purchases(provider):
            await lab.clock.sleep(0.01)
        assert looks(provider) == 1
        await launching

    linode_story(story)


def test_what_was_built_is_found_when_no_plan_can_be_had_any_more(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> None:
        first = await lab.provider()
        claim = lab.claim("a")
        launched = await first.create(claim)
        lab.faults.unavailable.add(("g6-standard-2", "us-ord"))
        second = await lab.provider()  # a new process, which knows nothing of the first
        assert (await second.create(claim)).provider_id == launched.provider_id
        assert len(lab.machines()) == 1

    linode_story(story)


def test_what_was_built_is_found_in_whatever_pool_it_is(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> None:
        plans = ("g6-standard-2", "g6-standard-4")
        lab.faults.unavailable.add(("g6-standard-2", "us-ord"))
        launched = await (await lab.provider()).create(lab.claim("a", plans))
        assert launched.instance_type == "g6-standard-4"
        lab.faults.unavailable.clear()
        again = await (await lab.provider()).create(lab.claim("a", plans))
        assert again.provider_id == launched.provider_id
        assert len(lab.machines()) == len(lab.pools) == 1

    linode_story(story)


def test_a_look_that_fails_ends_only_those_who_were_never_looked_for(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> None:
        provider = await lab.provider()
        first = asyncio.ensure_future(provider.create(lab.claim("a")))
        while not lab.pools:
            await lab.clock.sleep(0.01)
        lab.faults.fail("GET", POOLS.format(cluster=lab.cluster_id), 503, times=4)
        with pytest.raises(CloudError):
            await provider.create(lab.claim("b"))
        await first
        assert len(lab.machines()) == 1

    linode_story(story)


def test_lanes_that_nobody_needs_are_forgotten(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> None:
        provider = await lab.provider()
        for number in range(5):
            await provider.create(lab.claim(f"a-{number}", extra_labels={"edition": str(number)}))
            await lab.clock.sleep(30)
            assert len(provider._lanes._lanes) == 1
        assert len(lab.pools) == 5

    linode_story(story)


def test_a_lane_whose_purchase_may_still_show_is_kept(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> None:
        lab.options = replace(lab.options, create_deadline=4, settle_time=600)
        provider = await lab.provider()
        lab.faults.fail("POST", POOLS.format(cluster=lab.cluster_id), 500, times=1)
        with pytest.raises(CloudError):
            await provider.create(lab.claim("a"))
        await lab.clock.sleep(30)
        await provider.create(lab.claim("b", extra_labels={"edition": "other"}))
        assert len(provider._lanes._lanes) == 2
        await lab.clock.sleep(600)
        await provider.create(lab.claim("c", extra_labels={"edition": "third"}))
        assert len(provider._lanes._lanes) == 1

    linode_story(story)


def test_a_lane_is_kept_for_a_deletion_that_waits_for_it(linode_story: Callable[..., Any]) -> None:
    async def story(lab: Any) -> None:
        provider = await lab.provider()
        lanes = provider._lanes
        lane = lanes.of(identity := (await identity_of_a_lane(provider, lab)))
        holding, waiting, entered = asyncio.Event(), asyncio.Event(), []

        async def hold() -> None:
            async with lane.exclusive():
                waiting.set()
                await holding.wait()

        async def follow() -> None:
            async with lanes.of(identity).exclusive():
                entered.append(lanes.of(identity))

        first = asyncio.ensure_future(hold())
        await waiting.wait()
        second = asyncio.ensure_future(follow())
        await asyncio.sleep(0)
        holding.set()
        lanes.of(replace(identity, template="other"))  # would forget lanes that are idle
        assert lanes.of(identity) is lane
        await asyncio.gather(first, second)
        assert entered == [lane]

    linode_story(story)


async def identity_of_a_lane(provider: Any, lab: Any) -> Any:
    await provider.create(lab.claim("a"))
    await lab.clock.sleep(30)
    (identity,) = provider._lanes._lanes
    return identity
