"""What random stories once brought to light, each as the shortest story that shows it."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

from karpenter_linode.model.core import Pod
from karpenter_linode.model.karpenter import NodeClaim
from karpenter_linode.operator.embedded import EmbeddedWorld
from karpenter_linode.operator.options import Options
from karpenter_linode.ports import ConflictError, KubeError
from karpenter_linode.sim.faults import KubeCalls, KubeWatches, play_fault
from karpenter_linode.sim.kube_faults import FaultRule
from karpenter_linode.sim.loop import run_virtual
from karpenter_linode.sim.machine_shape import shape_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

HOUR = 3600.0
FOR_EVER = 10**6


@pytest.fixture
def play(example: Any) -> Any:
    """``play(story, consolidate_after)`` runs ``async def story(world)`` and returns what came of it."""

    def run(story: Callable[[EmbeddedWorld], Awaitable[None]], consolidate_after: str = "0s") -> Any:
        manifests = example()
        for item in manifests:
            if item["kind"] == "NodePool":
                budgets = [{"nodes": "100%"}]
                item["spec"]["disruption"] = {"consolidateAfter": consolidate_after, "budgets": budgets}

        async def live() -> Any:
            world = EmbeddedWorld(manifests, seed=7, options=Options(ignore_dra_requests=False))
            await world.start()
            try:
                await story(world)
                return world.outcome(quiet=True)
            finally:
                await world.stop()

        return run_virtual(live())

    return run


async def pod_ended(world: EmbeddedWorld) -> None:
    assert await world.run_until(
        lambda: any(pod.status.phase == "Succeeded" for pod in world.cluster.store.all(Pod)), HOUR
    )


async def bill_ended(world: EmbeddedWorld) -> None:
    assert await world.run_until(lambda: not world.cluster.linode.billing.running(), HOUR, 10)


def test_a_linode_set_aside_for_a_claim_that_went_away_is_collected(play: Any) -> None:
    async def story(world: EmbeddedWorld) -> None:
        world.cluster.linode.faults.fail("PUT", "/linode/instances/[0-9]+", 500, times=FOR_EVER)
        await world.run_until(lambda: bool(world.cluster.linode.machines.all()), 300)
        await world.clock.sleep(8)
        world.cluster.delete("v1", "Pod", "gpu-job")
        claim = next(iter(world.cluster.store.all(NodeClaim)))
        world.cluster.delete(claim.API_VERSION, claim.KIND, claim.name)
        await world.clock.sleep(600)
        world.cluster.linode.faults.rules.clear()
        await bill_ended(world)

    assert len(play(story).bill) == 1


def test_a_purchase_that_lands_after_the_process_ended_is_not_made_again(play: Any) -> None:
    async def story(world: EmbeddedWorld) -> None:
        posted = asyncio.Event()
        faults = world.cluster.linode.faults
        faults.carry_out_late("POST", "/lke/clusters/[0-9]+/pools", 8)
        faults.before_call = lambda method, _: posted.set() if method == "POST" else None
        await posted.wait()
        await world.clock.sleep(0.3)
        await world.kill_controller()
        await world.start_controller()
        await pod_ended(world)
        await bill_ended(world)

    outcome = play(story)
    assert len(outcome.node_claims) == 1
    assert len(outcome.bill) == 1


def test_a_claim_whose_creation_seemed_to_fail_is_not_created_again(play: Any) -> None:
    async def story(world: EmbeddedWorld) -> None:
        await world.run_until(world.runtime.state.synced, 60, 0.1)
        await world.clock.sleep(0.2)
        play_fault(world.cluster, KubeWatches("silence", "nodeclaims"))
        lost = FaultRule(
            lambda call: (call.verb, call.resource) == ("create", "nodeclaims"),
            lambda _: KubeError("no answer"),
            lost_answer=True,
        )
        world.cluster.faults.rules.append(lost)
        await pod_ended(world)
        await bill_ended(world)

    assert len(play(story).node_claims) == 1


def test_an_empty_node_whose_removal_met_a_conflict_is_removed_later(play: Any) -> None:
    async def story(world: EmbeddedWorld) -> None:
        await pod_ended(world)
        conflict = FaultRule(
            lambda call: (call.verb, call.resource) == ("delete", "nodeclaims"), lambda _: ConflictError("conflict")
        )
        world.cluster.faults.rules.append(conflict)
        await bill_ended(world)
        assert conflict.times == 0

    play(story, "30s")


def test_a_pod_that_the_watch_does_not_show_keeps_its_node(play: Any, example: Any) -> None:
    async def story(world: EmbeddedWorld) -> None:
        await pod_ended(world)
        await world.clock.sleep(20)
        play_fault(world.cluster, KubeWatches("silence", "pods"))
        second = next(item for item in example("20m") if item["kind"] == "Pod")
        second["metadata"]["name"] = "second"
        world.cluster.apply([second])
        await world.clock.sleep(600)
        assert all(pod.status.phase == "Running" for pod in world.cluster.store.all(Pod) if pod.name == "second")
        await bill_ended(world)

    outcome = play(story, "30s")
    assert {pod.phase for pod in outcome.pods} == {"Succeeded"}
    assert len(outcome.bill) == 1


def test_a_plan_that_disappoints_is_not_bought_again_and_again(play: Any) -> None:
    async def story(world: EmbeddedWorld) -> None:
        world.cluster._shape = lambda plan: shape_of(plan, Fraction(85, 100))
        greedy = deepcopy(next(item for item in world._manifests if item["kind"] == "Pod"))
        greedy["metadata"]["name"] = "greedy"
        greedy["spec"]["containers"][0]["resources"]["requests"] = {"memory": "13200Mi"}
        world.cluster.apply([greedy])
        await pod_ended(world)
        await bill_ended(world)
        await world.clock.sleep(HOUR)

    outcome = play(story, "30s")
    assert [item.pod for item in outcome.unplaced] == ["default/greedy"]
    assert "no instance type has enough resources" in str(outcome.unplaced[0].reason)
    assert len(outcome.bill) <= 2


@pytest.mark.parametrize("after_launch", [False, True])
def test_a_node_that_joined_while_kubernetes_was_away_is_kept(play: Any, after_launch: Any) -> None:
    async def story(world: EmbeddedWorld) -> None:
        def reached() -> bool:
            claims = list(world.cluster.store.all(NodeClaim))
            return bool(claims) and (not after_launch or bool(claims[0].status.provider_id))

        await world.run_until(reached, 300)
        play_fault(world.cluster, KubeCalls(status=503, times=FOR_EVER))
        play_fault(world.cluster, KubeWatches("compact"))
        await world.clock.sleep(HOUR)
        world.cluster.faults.rules.clear()
        await pod_ended(world)
        await bill_ended(world)

    assert len(play(story).bill) == 1
