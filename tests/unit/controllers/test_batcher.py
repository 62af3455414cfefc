from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from karpenter_linode.controllers.batcher import Batcher


@pytest.mark.parametrize(
    ("triggers", "closes"),
    [
        ([(0.0, "a")], 1.0),
        ([(0.0, "a"), (0.5, "b")], 1.5),
        ([(0.0, "a"), (0.5, "a"), (0.9, "a")], 1.0),
        ([(number * 0.9, f"pod-{number}") for number in range(30)], 10.0),
        ([(3.0, "a")], 4.0),
    ],
)
def test_when_a_window_closes(lab: Any, triggers: list[tuple[float, str]], closes: float) -> None:
    async def story(world: Any) -> None:
        batcher = Batcher(world.clock, timedelta(seconds=1), timedelta(seconds=10))
        loop = asyncio.get_running_loop()
        for when, uid in triggers:
            loop.call_at(when, batcher.trigger, uid)
        await batcher.wait()
        assert world.seconds() == pytest.approx(closes)

    lab(story)


def test_who_waits_for_the_opening_takes_nothing_from_the_window(lab: Any) -> None:
    async def story(world: Any) -> None:
        batcher = Batcher(world.clock, timedelta(seconds=1), timedelta(seconds=10))
        asyncio.get_running_loop().call_at(2.0, batcher.trigger, "a")
        await batcher.opened()
        assert world.seconds() == pytest.approx(2.0)
        await batcher.wait()
        assert world.seconds() == pytest.approx(3.0)

    lab(story)


def test_the_same_pod_may_open_the_next_window(lab: Any) -> None:
    async def story(world: Any) -> None:
        batcher = Batcher(world.clock, timedelta(seconds=1), timedelta(seconds=10))
        batcher.trigger("a")
        await batcher.wait()
        batcher.trigger("a")
        await batcher.wait()
        assert world.seconds() == pytest.approx(2.0)

    lab(story)
