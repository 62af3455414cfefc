"""An API server that errs, forgets, delays and breaks connections: the story takes longer and ends the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from karpenter_linode.model.core import Node, Pod
from karpenter_linode.model.karpenter import NodeClaim, NodePool
from karpenter_linode.model.resource import ResourceSlice
from karpenter_linode.operator.embedded import EmbeddedWorld, run_embedded
from karpenter_linode.operator.options import Options
from karpenter_linode.ports import ConflictError, KubeError, TooManyRequestsError
from karpenter_linode.sim.kube_faults import FaultRule
from karpenter_linode.sim.resource_types import type_of

if TYPE_CHECKING:
    from collections.abc import Callable

DRA_ON = Options(ignore_dra_requests=False)


@pytest.fixture
def run(example: Any) -> Any:
    def play(scenario: Callable[[EmbeddedWorld], Any], seed: int = 7) -> Any:
        return run_embedded(example(), seed=seed, options=DRA_ON, scenario=scenario, limit_seconds=7200)

    return play


def check(outcome: Any) -> None:
    assert outcome.quiet
    assert len(outcome.node_claims) == 1
    assert len(outcome.bill) == 1
    assert outcome.pods[0].phase == "Succeeded"
    assert outcome.left == ()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("lost_answer", [False, True], ids=["refused", "answer-lost"])
def test_one_call_in_five_fails(run: Any, seed: int, lost_answer: Any) -> None:
    async def scenario(world: EmbeddedWorld) -> None:
        luck = world.cluster.random.child("luck")
        world.cluster.faults.rules.append(
            FaultRule(
                lambda call: call.verb != "watch" and luck.uniform(0, 1) < 0.2,
                lambda _: KubeError("internal error"),
                times=None,
                lost_answer=lost_answer,
            )
        )

    check(run(scenario, seed))


@pytest.mark.parametrize("seed", range(3))
def test_every_other_write_meets_a_conflict(run: Any, seed: int) -> None:
    async def scenario(world: EmbeddedWorld) -> None:
        luck = world.cluster.random.child("luck")
        world.cluster.faults.rules.append(
            FaultRule(
                lambda call: call.verb == "patch" and luck.uniform(0, 1) < 0.5,
                lambda _: ConflictError("the object has been modified"),
                times=None,
            )
        )

    check(run(scenario, seed))


def test_a_minute_of_throttling(run: Any) -> None:
    async def scenario(world: EmbeddedWorld) -> None:
        rule = FaultRule(lambda _: True, lambda _: TooManyRequestsError("slow down"), times=None)
        world.cluster.faults.rules.append(rule)
        await world.clock.sleep(60)
        world.cluster.faults.rules.remove(rule)

    check(run(scenario))


@pytest.mark.parametrize("fault", ["drop", "compact", "silence"])
def test_watches_that_break_at_odd_moments(run: Any, fault: str) -> None:
    async def scenario(world: EmbeddedWorld) -> None:
        for number in range(40):
            await world.clock.sleep(7 + number % 5)
            for kind in (Pod, Node, NodeClaim, NodePool, ResourceSlice):
                history = world.cluster.store.history(type_of(kind))
                if fault == "compact":
                    history.compact()
                if fault == "silence" and number % 20 == 0:
                    history.silence_watches()
                if fault != "silence":
                    history.drop_watches()

    check(run(scenario))


def test_a_stale_mirror_does_not_buy_twice(run: Any) -> None:
    async def scenario(world: EmbeddedWorld) -> None:
        world.cluster.faults.watch_lag = 20.0

    check(run(scenario))


def test_an_instance_that_linode_forgot_takes_its_node_claim_along(run: Any) -> None:
    async def scenario(world: EmbeddedWorld) -> None:
        def booted() -> bool:
            return any(pod.status.phase == "Running" for pod in world.cluster.store.all(Pod))

        await world.run_until(booted, 1200)
        await world.run_until_quiet(60)
        machine = world.cluster.linode.machines.all()[0]
        world.cluster.linode.delete_machine(machine)

    outcome = run(scenario)
    first = outcome.node_claims[0]
    assert first.deleted is not None
    assert outcome.left == ()


def test_a_sold_out_plan_gives_its_claim_up_and_tries_again_later(run: Any) -> None:
    async def scenario(world: EmbeddedWorld) -> None:
        world.cluster.linode.faults.sold_out.add(("g2-gpu-rtx4000a1-s", "us-ord"))
        await world.clock.sleep(120)
        world.cluster.linode.faults.sold_out.clear()

    outcome = run(scenario)
    assert outcome.pods[0].phase == "Succeeded"
    assert outcome.left == ()
    assert len(outcome.bill) == 1
    assert any(entry.text.startswith("InsufficientCapacityError") for entry in outcome.journal)


@pytest.mark.parametrize("seed", range(8))
def test_a_claim_that_was_given_up_buys_no_other_plan_while_it_goes(example: Any, seed: int) -> None:
    manifests = example()
    for item in manifests:
        if item["kind"] == "NodePool":
            item["spec"]["template"]["spec"]["requirements"] = []

    async def scenario(world: EmbeddedWorld) -> None:
        world.cluster.linode.faults.sold_out.add(("g2-gpu-rtx4000a1-s", "us-ord"))

    outcome = run_embedded(manifests, seed=seed, options=DRA_ON, scenario=scenario, limit_seconds=7200)
    assert outcome.pods[0].phase == "Succeeded"
    assert [line.instance_type for line in outcome.bill] == ["g2-gpu-rtx4000a1-m"]
    given_up = [entry for entry in outcome.journal if entry.text.startswith("failed launching nodeclaim")]
    assert len(given_up) == 1
