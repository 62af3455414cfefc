from __future__ import annotations

import asyncio
import itertools
from datetime import timedelta
from typing import Any

from karpenter_linode.controllers.effects import Done
from karpenter_linode.controllers.reconciler import Loop, Reconciler
from karpenter_linode.controllers.timing import Backoff
from karpenter_linode.ports import KubeError


def synced(world: Any) -> None:
    for kind in world.runtime.state.kinds:
        world.runtime.state.relist(kind, [], "1")
    world.runtime.announce_sync()


def test_nothing_is_decided_before_everything_was_listed(lab: Any) -> None:
    async def story(world: Any) -> None:
        seen: list[str] = []

        async def reconcile(key: str) -> None:
            seen.append(key)

        controller = Reconciler("test", world.runtime, reconcile)
        controller.queue.add("a")
        task = asyncio.create_task(controller.run())
        await world.clock.sleep(5)
        assert seen == []
        synced(world)
        await world.clock.sleep(1)
        assert seen == ["a"]
        task.cancel()

    lab(story)


def test_failures_are_logged_and_tried_again_with_back_off(lab: Any) -> None:
    async def story(world: Any) -> None:
        tries: list[float] = []
        answers = [KubeError("down"), ValueError("a bug"), Done(failures=("not yet",)), Done(conflict=True), None]

        async def reconcile(_: str) -> Done | None:
            tries.append(world.seconds())
            answer = answers[len(tries) - 1]
            if isinstance(answer, Exception):
                raise answer
            return answer

        controller = Reconciler("test", world.runtime, reconcile, backoff=Backoff(1.0, 60.0))
        synced(world)
        controller.queue.add("a")
        task = asyncio.create_task(controller.run())
        await world.clock.sleep(60)
        pauses = [round(later - sooner, 1) for sooner, later in itertools.pairwise(tries)]
        assert [round(pause) for pause in pauses] == [1, 2, 4, 0]
        lines = [fields for message, fields in world.notebook.lines if message == "Reconciler error"]
        assert [fields["error"] for fields in lines] == ["down", "ValueError: a bug", "not yet"]
        assert ["exc_info" in fields for fields in lines] == [False, True, False]
        task.cancel()

    lab(story)


def test_one_object_at_a_time_but_several_objects(lab: Any) -> None:
    async def story(world: Any) -> None:
        active: list[str] = []
        most = 0

        async def reconcile(key: str) -> Done:
            nonlocal most
            assert key not in active
            active.append(key)
            most = max(most, len(active))
            await world.clock.sleep(10)
            active.remove(key)
            return Done(requeue=timedelta(0))

        controller = Reconciler("test", world.runtime, reconcile, workers=2)
        synced(world)
        for key in "abc":
            controller.queue.add(key)
        task = asyncio.create_task(controller.run())
        await world.clock.sleep(100)
        assert most == 2
        task.cancel()

    lab(story)


def test_a_loop_goes_on_after_a_failed_pass(lab: Any) -> None:
    async def story(world: Any) -> None:
        passes: list[float] = []

        async def step() -> float:
            passes.append(world.seconds())
            if len(passes) == 1:
                raise RuntimeError("a bug")
            return 10.0

        synced(world)
        task = asyncio.create_task(Loop("test", world.runtime, step).run())
        await world.clock.sleep(25)
        assert len(passes) == 4
        assert world.notebook.lines[0][1]["error"] == "RuntimeError: a bug"
        task.cancel()

    lab(story)


def test_as_many_keys_as_allowed_are_worked_on_at_once_and_no_more(lab: Any) -> None:
    async def story(world: Any) -> None:
        now, most, done = 0, 0, 0

        async def reconcile(_: str) -> None:
            nonlocal now, most, done
            now += 1
            most = max(most, now)
            await world.clock.sleep(10)
            now -= 1
            done += 1

        controller = Reconciler("test", world.runtime, reconcile, workers=40)
        synced(world)
        for number in range(25):  # before anybody works
            controller.queue.add(f"early-{number}")
        task = asyncio.create_task(controller.run())
        await world.clock.sleep(1)
        assert (now, most) == (25, 25)
        for number in range(35):  # while those who stand by are busy
            controller.queue.add(f"late-{number}")
        await world.clock.sleep(1)
        assert (now, most) == (40, 40)
        await world.clock.sleep(30)
        assert (now, most, done) == (0, 40, 60)
        assert controller._present == 10  # the others have left
        controller.queue.add("afterwards")
        await world.clock.sleep(11)
        assert done == 61
        task.cancel()

    lab(story)
