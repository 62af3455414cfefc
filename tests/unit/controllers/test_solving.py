"""A simulation that takes long neither holds up the process nor goes on for ever."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from karpenter_linode.controllers.solving import TIME_LIMIT, solve_in_turns
from karpenter_linode.model import codec
from karpenter_linode.model.core import Pod
from karpenter_linode.model.instance_type import InstanceType
from karpenter_linode.model.karpenter import NodePool
from karpenter_linode.scheduling import Problem, Simulation, solve
from karpenter_linode.scheduling.queue import OUT_OF_TIME

if TYPE_CHECKING:
    from collections.abc import Iterable

POOL = codec.convert(
    {"metadata": {"name": "p"}, "spec": {"template": {"spec": {"requirements": [], "nodeClassRef": {}}}}}, NodePool
)
PLAN = codec.convert(
    {
        "name": "plan",
        "capacity": {"cpu": "1", "pods": "10"},
        "offerings": [{"requirements": [], "price": 1, "available": True}],
    },
    InstanceType,
)


class SlowMachine:
    """A clock by which every look at it takes a while, as if the solver had worked so long in between."""

    def __init__(self, step: timedelta) -> None:
        self.time = datetime(2026, 1, 1, tzinfo=UTC)
        self._step = step

    def now(self) -> datetime:
        self.time += self._step
        return self.time

    async def sleep(self, seconds: float) -> None:
        raise AssertionError(f"asked to sleep {seconds} seconds")


def pods(cpus: Iterable[str]) -> tuple[Pod, ...]:
    return tuple(
        codec.convert(
            {
                "metadata": {"name": f"pod-{number:03}", "namespace": "default", "uid": f"uid-{number:03}"},
                "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]},
                "status": {"phase": "Pending"},
            },
            Pod,
        )
        for number, cpu in enumerate(cpus)
    )


def problem(count: int) -> Problem:
    # No two alike, each on a node of its own.
    return Problem(
        pods=pods(f"{999 - number}m" for number in range(count)), node_pools=(POOL,), instance_types={"p": (PLAN,)}
    )


def test_a_fast_simulation_is_not_interrupted_and_answers_as_ever() -> None:
    posed = problem(30)

    async def story() -> None:
        others: list[str] = []
        asyncio.get_running_loop().call_soon(others.append, "ran")
        assert await solve_in_turns(Simulation(posed), SlowMachine(timedelta(0))) == solve(posed)
        assert others == []

    asyncio.run(story())


def test_while_a_slow_one_works_the_rest_of_the_process_has_its_turns() -> None:
    async def story() -> None:
        turns = 0

        async def renew() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        renewing = asyncio.create_task(renew())
        posed = problem(40)
        machine = SlowMachine(timedelta(milliseconds=10))  # 40 pods: not near the limit
        assert await solve_in_turns(Simulation(posed), machine) == solve(posed)
        assert turns >= 20
        renewing.cancel()

    asyncio.run(story())


def test_at_the_limit_what_was_placed_counts_and_the_others_say_that_they_were_not_reached() -> None:
    posed = problem(40)
    solution = asyncio.run(solve_in_turns(Simulation(posed), SlowMachine(timedelta(seconds=3))))
    placed = [pod.name for claim in solution.new_node_claims for pod in claim.pods]
    unreached = [item.pod.name for item in solution.unplaced]
    assert placed == [item.name for item in posed.pods][: len(placed)]
    assert placed + unreached == [item.name for item in posed.pods]
    assert 1 <= len(placed) <= TIME_LIMIT / timedelta(seconds=3)
    assert {item.reason.code for item in solution.unplaced} == {OUT_OF_TIME}
    text = "not reached: the simulation was ended by its time limit; the pod is tried again in the next one"
    assert {item.reason.message for item in solution.unplaced} == {text}


def test_a_pod_that_was_tried_before_the_limit_keeps_the_reason_that_it_was_given() -> None:
    posed = Problem(pods=pods(["2", *["1"] * 3]), node_pools=(POOL,), instance_types={"p": (PLAN,)})
    simulation = Simulation(posed)
    turns = simulation.turns()
    next(turns)
    simulation.cut()
    assert list(turns)
    codes: dict[str, Any] = {item.pod.name: item.reason.code for item in simulation.solution.unplaced}
    assert codes.pop("pod-000") == "instance-types"
    assert codes == dict.fromkeys(["pod-001", "pod-002", "pod-003"], OUT_OF_TIME)
