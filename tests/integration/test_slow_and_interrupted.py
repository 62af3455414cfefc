"""Nodes that take their time, pods that change their mind, controllers that die: one need, one node."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.model.core import Node, Pod
from karpenter_linode.model.karpenter import NodeClaim, NodePool
from karpenter_linode.model.meta import find_condition
from karpenter_linode.sim.cluster import SimSettings
from karpenter_linode.sim.delays import SimDelays
from karpenter_linode.sim.nvidia import DriverBehaviour

CLAIMS = ("karpenter.sh/v1", "NodeClaim")


def claims(world: Any) -> list[NodeClaim]:
    return list(world.cluster.store.all(NodeClaim))


def running(world: Any) -> bool:
    return any(pod.status.phase == "Running" for pod in world.cluster.store.all(Pod))


def test_late_slices_keep_the_node_waiting_and_buy_no_second_one(described: Any, job: Any, play: Any) -> None:
    settings = SimSettings(driver=DriverBehaviour(late_seconds=600))

    async def story(world: Any) -> None:
        await world.run_until(lambda: bool(claims(world)) and claims(world)[0].status.node_name != "", 600)
        await world.clock.sleep(300)
        (claim,) = claims(world)
        initialized = find_condition(claim.status.conditions, "Initialized")
        assert (initialized.status, initialized.reason) == ("Unknown", "DRADriverPoolsNotPublished")
        assert initialized.message == 'DRA driver "gpu.nvidia.com" has not published a complete resource pool'
        assert world.runtime.state.state_nodes(world.clock.now())[0].nominated
        assert await world.run_until(lambda: running(world), 900)
        assert len(world.history.node_claims()) == 1

    play([*described, job()], story, settings=settings)


@pytest.mark.parametrize("publishing", ["parts", "regenerated"])
def test_a_pool_published_in_parts_counts_once_it_is_complete(
    described: Any, job: Any, play: Any, publishing: Any
) -> None:
    described[1]["spec"]["template"]["spec"]["requirements"][0]["values"] = ["g2-gpu-rtx4000a2-s"]
    described[2]["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] = 2
    settings = SimSettings(driver=DriverBehaviour(publishing=publishing), delays=SimDelays(driver_part=(60.0, 60.0)))

    async def story(world: Any) -> None:
        assert await world.run_until(lambda: running(world), 1800)
        (claim,) = world.history.node_claims()
        slices = [entry for entry in world.cluster.journal.entries if "Published" in entry.message]
        assert len(slices) >= 2
        assert claim.initialized >= slices[-1].at.replace(microsecond=0)

    play([*described, job()], story, settings=settings)


def test_a_pod_deleted_while_its_node_boots_leaves_nothing_behind(described: Any, job: Any, play: Any) -> None:
    async def story(world: Any) -> None:
        await world.run_until(lambda: bool(world.cluster.linode.billing.running()), 120)
        await world.clock.sleep(20)
        world.cluster.delete("v1", "Pod", "gpu-job")
        assert await world.run_until_quiet(3600)
        outcome = world.outcome(quiet=True)
        assert len(outcome.node_claims) == 1
        assert outcome.left == ()

    play([*described, job()], story)


def test_a_deleted_node_is_drained_and_its_pool_goes(described: Any, job: Any, play: Any) -> None:
    async def story(world: Any) -> None:
        assert await world.run_until(lambda: running(world), 1200)
        (node,) = world.cluster.store.all(Node)
        world.cluster.delete("v1", "Node", node.name, "")
        assert await world.run_until(lambda: not claims(world), 300)
        assert world.cluster.linode.billing.running() == ()
        assert not world.cluster.linode.pools.of(561146)
        log = [entry.message for entry in world.cluster.journal.entries]
        assert log.index("tainted node") < log.index("Evicted pod: Forceful Termination")
        assert log.index("Evicted pod: Forceful Termination") < log.index("deleted node")
        assert log.index("deleted node") < log.index("deleted nodeclaim")

    play([*described, job(runtime=None)], story)


def test_a_deleted_node_claim_takes_node_and_instance_along(described: Any, job: Any, play: Any) -> None:
    async def story(world: Any) -> None:
        assert await world.run_until(lambda: running(world), 1200)
        world.cluster.delete(*CLAIMS, claims(world)[0].name, "")
        assert await world.run_until(lambda: not claims(world), 300)
        assert not list(world.cluster.store.all(Node))
        assert world.cluster.linode.billing.running() == ()

    play([*described, job(runtime=None)], story)


def test_a_controller_killed_between_create_and_status_write_adopts_the_instance(
    described: Any, job: Any, play: Any
) -> None:
    async def story(world: Any) -> None:
        assert await world.run_until(lambda: bool(world.cluster.linode.billing.running()), 120, step=0.01)
        assert claims(world)[0].status.provider_id == ""
        await world.kill_controller()
        await world.clock.sleep(45)
        assert claims(world)[0].status.provider_id == ""
        await world.start_controller()
        assert await world.run_until(lambda: running(world), 1200)
        assert len(world.cluster.linode.billing.charges) == 1
        (claim,) = world.history.node_claims()
        assert world.cluster.linode.billing.charges[0].instance == int(claim.provider_id.rpartition("/")[2])

    play([*described, job()], story)


@pytest.mark.parametrize("after", [0.5, 1.2, 3.0, 7.0, 30.0, 150.0, 200.0])
def test_a_restart_at_any_moment_costs_no_second_node(described: Any, job: Any, play: Any, after: float) -> None:
    async def story(world: Any) -> None:
        await world.clock.sleep(after)
        await world.kill_controller()
        await world.clock.sleep(5)
        await world.start_controller()
        assert await world.run_until_quiet(3600)
        outcome = world.outcome(quiet=True)
        assert len(outcome.node_claims) == 1
        assert len(outcome.bill) == 1
        assert outcome.pods[0].phase == "Succeeded"
        assert outcome.left == ()

    play([*described, job()], story)


def test_a_restart_does_not_make_a_quiet_node_look_busy(described: Any, job: Any, play: Any) -> None:
    described[1]["spec"]["disruption"] = {"consolidateAfter": "30m"}

    async def story(world: Any) -> None:
        assert await world.run_until(lambda: running(world), 1200)
        await world.clock.sleep(60)
        before = claims(world)[0].status.last_pod_event_time
        await world.kill_controller()
        await world.start_controller()
        await world.clock.sleep(60)
        assert before is not None
        assert claims(world)[0].status.last_pod_event_time == before

    play([*described, job(runtime=None)], story)


def test_an_instance_whose_node_claim_was_torn_away_is_collected(described: Any, job: Any, play: Any) -> None:
    async def story(world: Any) -> None:
        await world.run_until(lambda: bool(claims(world)) and claims(world)[0].status.provider_id != "", 120)
        (claim,) = claims(world)
        served = world.cluster.store
        world.cluster.delete("v1", "Pod", "gpu-job")
        await world.kill_controller()
        world.cluster.delete(*CLAIMS, claim.name, "")
        kube = world.cluster.kube_api("user")
        await kube.patch(NodeClaim, claim.name, {"metadata": {"finalizers": None}})
        assert not list(served.all(NodeClaim))
        await world.start_controller()
        assert await world.run_until(lambda: not world.cluster.linode.billing.running(), 300)

    play([*described, job()], story)


def test_the_node_pool_counts_its_nodes(described: Any, job: Any, play: Any) -> None:
    async def story(world: Any) -> None:
        assert await world.run_until(lambda: running(world), 1200)
        await world.clock.sleep(6)
        pool = world.cluster.store.find(NodePool, "gpu")
        assert pool.status.nodes == 1
        assert str(pool.status.resources["cpu"]) == "4"
        assert find_condition(pool.status.conditions, "Ready").status == "True"

    play([*described, job(runtime=None)], story)


def test_a_node_claim_deleted_while_it_is_launched_leaves_nothing(described: Any, job: Any, play: Any) -> None:
    async def story(world: Any) -> None:
        assert await world.run_until(lambda: bool(world.cluster.linode.billing.running()), 120, step=0.01)
        (claim,) = claims(world)
        assert claim.status.provider_id == ""
        world.cluster.delete("v1", "Pod", "gpu-job")
        world.cluster.delete(*CLAIMS, claim.name, "")
        assert await world.run_until(lambda: not claims(world), 300)
        assert await world.run_until(lambda: not world.cluster.linode.billing.running(), 60)

    play([*described, job()], story)


def test_a_deleted_node_pool_takes_its_nodes_along(described: Any, job: Any, play: Any) -> None:
    async def story(world: Any) -> None:
        assert await world.run_until(lambda: running(world), 1200)
        world.cluster.delete("karpenter.sh/v1", "NodePool", "gpu", "")
        assert await world.run_until(lambda: not claims(world), 300)
        assert world.cluster.linode.billing.running() == ()

    play([*described, job(runtime=None)], story)


def test_a_protected_pod_holds_a_deleted_node_until_its_grace_period_ends(described: Any, job: Any, play: Any) -> None:
    described[1]["spec"]["template"]["spec"]["terminationGracePeriod"] = "10m"
    pod = job(runtime=None, terminationGracePeriodSeconds=30)
    pod["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"] = "true"

    async def story(world: Any) -> None:
        assert await world.run_until(lambda: running(world), 1200)
        (node,) = world.cluster.store.all(Node)
        world.cluster.delete("v1", "Node", node.name, "")
        start = world.clock.now()
        await world.clock.sleep(560)
        assert running(world)
        assert await world.run_until(lambda: not claims(world), 300)
        told = [entry for entry in world.cluster.journal.entries if entry.fields.get("reason") == "Disrupted"]
        assert len(told) == 1
        assert 569 <= (told[0].at - start).total_seconds() <= 580
        assert "The pod was granted" in told[0].message

    play([*described, pod], story)


def test_three_pods_that_fit_one_node_get_one_however_long_it_takes(described: Any, job: Any, play: Any) -> None:
    pods = [job(f"job-{number}") for number in range(3)]
    for pod in pods:
        del pod["spec"]["resourceClaims"]
        pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "500m"}}

    async def story(world: Any) -> None:
        for _ in range(9):
            await world.clock.sleep(10)
            assert len(claims(world)) == 1
        assert await world.run_until_quiet(3600)
        assert len(world.history.node_claims()) == 1

    play([*described, *pods], story)


def test_a_startup_taint_that_the_pod_does_not_tolerate_hides_no_node(described: Any, job: Any, play: Any) -> None:
    described[1]["spec"]["template"]["spec"]["startupTaints"] = [{"key": "warming", "effect": "NoSchedule"}]

    async def story(world: Any) -> None:
        kube = world.cluster.kube_api("user")
        assert await world.run_until(
            lambda: any(node.metadata.labels.get("karpenter.sh/registered") for node in world.cluster.store.all(Node)),
            600,
        )
        await world.clock.sleep(120)
        (claim,) = claims(world)
        assert find_condition(claim.status.conditions, "Initialized").reason == "StartupTaintsExist"
        (node,) = world.cluster.store.all(Node)
        kept = [
            {"key": taint.key, "value": taint.value, "effect": taint.effect}
            for taint in node.spec.taints
            if taint.key != "warming"
        ]
        await kube.patch(Node, node.name, {"spec": {"taints": kept}})
        assert await world.run_until(lambda: running(world), 600)
        assert len(world.history.node_claims()) == 1
        (node,) = world.cluster.store.all(Node)
        assert all(taint.key != "warming" for taint in node.spec.taints)

    play([*described, job()], story)


def test_a_node_is_not_removed_while_its_pods_had_no_chance_yet(described: Any, job: Any, play: Any) -> None:
    # Two minutes between the decision to bind and the binding: the node is initialized, quiet and empty all the while.
    settings = SimSettings(delays=SimDelays(scheduling_cycle=0.002, binding=(120.0, 120.0)))

    async def story(world: Any) -> None:
        assert await world.run_until(lambda: running(world), 1800)
        assert len(world.history.node_claims()) == 1

    play([*described, job()], story, settings=settings)
