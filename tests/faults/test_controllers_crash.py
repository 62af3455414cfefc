"""The controller dies at every write it makes, before and after the write takes effect, and starts again.

Whatever the moment: one NodeClaim, one Linode, the pod runs, and nothing stays billed.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from karpenter_linode.operator.embedded import EmbeddedWorld
from karpenter_linode.operator.options import Options
from karpenter_linode.ports import KubeError
from karpenter_linode.sim.kube_faults import FaultRule
from karpenter_linode.sim.loop import run_virtual

WATCHED = {"nodeclaims", "nodes"}
WRITES = 23  # to NodeClaims and Nodes, in one life of the example; the test counts them


def is_write(call: Any) -> bool:
    return bool(call.writes and call.resource in WATCHED)


async def live_with_a_crash(world: EmbeddedWorld, crash: asyncio.Event) -> Any:
    async def reaper() -> None:
        await crash.wait()
        await world.kill_controller()
        await world.clock.sleep(7)
        await world.start_controller()

    await world.start()
    task = asyncio.create_task(reaper())
    try:
        quiet = await world.run_until_quiet(3600)
        return world.outcome(quiet=quiet)
    finally:
        task.cancel()
        await world.stop()


def check(outcome: Any) -> None:
    assert outcome.quiet
    assert len(outcome.node_claims) == 1
    assert len(outcome.bill) == 1
    assert outcome.pods[0].phase == "Succeeded"
    assert outcome.left == ()


@pytest.mark.parametrize("written", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", range(WRITES))
def test_a_crash_at_a_write_to_kubernetes(example: Any, number: int, written: Any) -> None:
    async def live() -> None:
        world = EmbeddedWorld(example(), seed=7, options=Options(ignore_dra_requests=False))
        crash = asyncio.Event()

        def error(_: Any) -> KubeError:
            crash.set()
            return KubeError("the process died")

        world.cluster.faults.rules.append(FaultRule(is_write, error, skip=number, lost_answer=written))
        check(await live_with_a_crash(world, crash))
        assert crash.is_set()

    run_virtual(live())


def test_the_crashes_cover_a_whole_life(example: Any) -> None:
    async def live() -> int:
        world = EmbeddedWorld(example(), seed=7, options=Options(ignore_dra_requests=False))
        count = 0

        def counted(call: Any) -> bool:
            nonlocal count
            count += is_write(call)
            return False

        world.cluster.faults.rules.append(FaultRule(counted, lambda _: KubeError("never")))
        check(await live_with_a_crash(world, asyncio.Event()))
        return count

    assert run_virtual(live()) == WRITES


@pytest.mark.parametrize("number", range(12))
def test_a_crash_at_a_call_to_linode(example: Any, number: int) -> None:
    async def live() -> None:
        world = EmbeddedWorld(example(), seed=7, options=Options(ignore_dra_requests=False))
        crash = asyncio.Event()
        calls = 0

        def count(method: str, _: str) -> None:
            nonlocal calls
            if method != "GET":
                calls += 1
            if calls > number // 4 and method in {"POST", "PUT", "DELETE"}:
                asyncio.get_running_loop().call_later(0.1 * (number % 4), crash.set)

        world.cluster.linode.faults.before_call = count
        check(await live_with_a_crash(world, crash))

    run_virtual(live())
