from __future__ import annotations

import asyncio
from typing import Any

from karpenter_linode.controllers.queue import WorkQueue
from karpenter_linode.controllers.timing import Backoff, wait_for_event


def queue(lab: Any) -> WorkQueue:
    return WorkQueue(lab.clock, lab.random, Backoff(1.0, 8.0))


def test_a_key_waits_once(lab: Any) -> None:
    async def story(world: Any) -> None:
        work = queue(world)
        work.add("a")
        work.add("a")
        assert await work.take() == "a"
        work.done("a")
        assert not work.busy

    lab(story)


def test_a_key_that_comes_back_while_it_is_worked_on_is_worked_on_once_more(lab: Any) -> None:
    async def story(world: Any) -> None:
        work = queue(world)
        work.add("a")
        await work.take()
        work.add("a")
        work.add("b")
        assert await work.take() == "b"
        work.done("a")
        assert await work.take() == "a"

    lab(story)


def test_later_means_later_and_the_earlier_time_wins(lab: Any) -> None:
    async def story(world: Any) -> None:
        work = queue(world)
        work.add_after("a", 30)
        work.add_after("a", 10)
        work.add_after("a", 20)
        assert await work.take() == "a"
        assert world.seconds() == 10

    lab(story)


def test_work_done_sooner_makes_the_later_time_void(lab: Any) -> None:
    async def story(world: Any) -> None:
        work = queue(world)
        work.add_after("a", 30)
        work.add("a")
        await work.take()
        work.done("a")
        await world.clock.sleep(60)
        assert not work.busy

    lab(story)


def test_failures_back_off_up_to_a_cap_and_success_starts_anew(lab: Any) -> None:
    async def story(world: Any) -> None:
        work = queue(world)
        pauses = []
        for _ in range(5):
            before = world.seconds()
            work.retry("a")
            await work.take()
            pauses.append(world.seconds() - before)
            work.done("a")
        assert [round(pause) for pause in pauses[:3]] == [1, 2, 4]
        assert 7.2 <= pauses[4] <= 8.8
        work.succeeded("a")
        before = world.seconds()
        work.retry("a")
        await work.take()
        assert world.seconds() - before < 1.2

    lab(story)


def test_waiting_for_an_event_ends_with_it_or_with_the_time(lab: Any) -> None:
    async def story(world: Any) -> None:
        event = asyncio.Event()
        assert not await wait_for_event(event, world.clock, 5)
        assert world.seconds() == 5
        asyncio.get_running_loop().call_later(1, event.set)
        assert await wait_for_event(event, world.clock, 5)
        assert world.seconds() == 6

    lab(story)
