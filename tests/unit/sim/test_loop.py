"""Virtual time: jumps, order, deadlock, livelock, and the libraries that must work under it."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from karpenter_linode.sim.clock import VirtualClock
from karpenter_linode.sim.loop import DeadlockError, LivelockError, VirtualTimeError, run_virtual
from karpenter_linode.sim.seeded import NAME_ALPHABET, SeededRandom


def test_an_hour_of_sleep_takes_no_time() -> None:
    async def main() -> float:
        await asyncio.sleep(3600)
        return asyncio.get_running_loop().time()

    began = time.perf_counter()
    assert run_virtual(main()) == 3600
    assert time.perf_counter() - began < 1


def test_timers_beyond_a_day_are_reached() -> None:
    async def main() -> float:
        await asyncio.sleep(10 * 86_400)
        return asyncio.get_running_loop().time()

    assert run_virtual(main()) == 864_000


def test_timeouts_strike_at_their_time() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.sleep(100), 5)
        return asyncio.get_running_loop().time()

    assert run_virtual(main()) == 5


def test_tasks_run_in_order_of_their_timers() -> None:
    async def main() -> list[str]:
        seen: list[str] = []

        async def later(name: str, seconds: float) -> None:
            await asyncio.sleep(seconds)
            seen.append(name)

        await asyncio.gather(later("c", 3), later("a", 1), later("b", 2), later("a2", 1))
        return seen

    assert run_virtual(main()) == ["a", "a2", "b", "c"]


def test_waiting_for_nothing_is_a_deadlock_that_names_the_task() -> None:
    async def waits_for_ever() -> None:
        await asyncio.Event().wait()

    with pytest.raises(DeadlockError, match="waits_for_ever"):
        run_virtual(waits_for_ever())


def test_spinning_without_time_passing_is_a_livelock() -> None:
    async def spins() -> None:
        while True:  # noqa: ASYNC110  # a program that waits badly is what this is about
            await asyncio.sleep(0)

    with pytest.raises(LivelockError, match="spins"):
        run_virtual(spins())


def test_threads_are_refused() -> None:
    async def main() -> None:
        await asyncio.to_thread(time.time)

    with pytest.raises(VirtualTimeError, match="thread"):
        run_virtual(main())


def test_tasks_left_behind_are_cancelled() -> None:
    ended: list[str] = []

    async def background() -> None:
        try:
            await asyncio.sleep(1_000_000)
        finally:
            ended.append("cancelled")

    async def main() -> None:
        task = asyncio.create_task(background())
        await asyncio.sleep(1)
        assert not task.done()

    run_virtual(main())
    assert ended == ["cancelled"]


def test_an_asgi_application_answers_in_process() -> None:
    async def slow(request: object) -> JSONResponse:
        await asyncio.sleep(30)
        return JSONResponse({"at": asyncio.get_running_loop().time()})

    async def main() -> float:
        app = Starlette(routes=[Route("/", slow)])
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://linode") as client:
            response = await client.get("/")
        return float(response.json()["at"])

    assert run_virtual(main()) == 30


def test_the_clock_counts_from_its_start() -> None:
    async def main() -> datetime:
        clock = VirtualClock(asyncio.get_running_loop(), datetime(2026, 1, 1, tzinfo=UTC))
        await clock.sleep(90.5)
        return clock.now()

    assert run_virtual(main()) - datetime(2026, 1, 1, tzinfo=UTC) == timedelta(seconds=90.5)


def test_streams_of_one_seed_are_independent() -> None:
    alone = SeededRandom(7).child("kubelet").uniform(0, 1)
    root = SeededRandom(7)
    root.uniform(0, 1)
    other = root.child("scheduler")
    other.token(5)
    assert root.child("kubelet").uniform(0, 1) == alone
    assert SeededRandom(8).child("kubelet").uniform(0, 1) != alone


def test_tokens_look_like_those_of_kubernetes() -> None:
    token = SeededRandom(1).token(200)
    assert len(token) == 200
    assert set(token) <= set(NAME_ALPHABET)


def test_uuids_are_version_four() -> None:
    text = SeededRandom(1).uuid()
    assert [len(part) for part in text.split("-")] == [8, 4, 4, 4, 12]
    assert text[14] == "4"
    assert text[19] in "89ab"
