"""Work is counted, and the code that does it knows what it works on."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from karpenter_linode.controllers.effects import Done
from karpenter_linode.controllers.reconciler import Loop, Reconciler
from karpenter_linode.controllers.scope import SCOPE, controller_name
from karpenter_linode.model.core import Node
from karpenter_linode.ports import KubeError

if TYPE_CHECKING:
    from collections.abc import Callable

RESULTS = {
    "fine": None,
    "later": Done(requeue=timedelta(hours=1)),
    "waits": Done(retry=True),
    "locked": Done(conflict=True),
    "failed": Done(failures=("no",)),
}


async def listed(world: Any) -> None:
    for kind in world.runtime.state.kinds:
        world.runtime.state.relist(kind, (), "1")
    world.runtime.announce_sync()


def test_reconciles_are_counted_by_their_outcome(lab: Callable[..., Any]) -> None:
    async def story(world: Any) -> dict[str, float]:
        seen: list[tuple[str, str, str]] = []

        async def reconcile(key: str) -> Done | None:
            scope = SCOPE.get()
            assert scope is not None
            seen.append((scope.controller, scope.key, scope.kind.KIND))
            await world.clock.sleep(2)
            if key == "bug":
                raise RuntimeError(key)
            if key == "refused":
                raise KubeError(key)
            return RESULTS.get(key)

        await listed(world)
        controller = Reconciler("test", world.runtime, reconcile, workers=20, kind=Node)
        task = asyncio.create_task(controller.run())
        await world.clock.sleep(0)
        for key in (*RESULTS, "bug", "refused"):
            controller.queue.add(key)
        await world.clock.sleep(1)
        assert controller.busy == 7
        assert controller.queue.under_way() == (1,) * 7
        await world.clock.sleep(1.05)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert {item[0] for item in seen} == {"test"}
        assert {item[2] for item in seen} == {"Node"}
        count = world.metrics.counter
        assert count("workqueue_adds_total", controller="test") == 7
        assert count("workqueue_retries_total", controller="test") == 4
        assert count("controller_runtime_reconcile_errors_total", controller="test") == 3
        assert count("controller_runtime_reconcile_panics_total", controller="test") == 1
        times = world.metrics.samples["controller_runtime_reconcile_time_seconds"]
        assert [(sample.count, sample.sum) for sample in times.values()] == [(7, 14)]
        return {
            result: count("controller_runtime_reconcile_total", controller="test", result=result)
            for result in ("success", "requeue", "requeue_after", "error")
        }

    assert lab(story) == {"success": 1, "requeue": 2, "requeue_after": 1, "error": 3}


def test_passes_are_counted_too_and_know_their_controller(lab: Callable[..., Any]) -> None:
    async def story(world: Any) -> list[str]:
        names: list[str] = []

        async def step() -> float:
            names.append(controller_name())
            return 10.0

        await listed(world)
        task = asyncio.create_task(Loop("passes", world.runtime, step).run())
        await world.clock.sleep(15)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        count = world.metrics.counter("controller_runtime_reconcile_total", controller="passes", result="requeue_after")
        assert count == 2
        return names

    assert lab(story) == ["passes", "passes"]
    assert controller_name() == ""
