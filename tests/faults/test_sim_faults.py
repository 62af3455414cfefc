"""Every fault that a scenario can play does what it says."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from karpenter_linode.model.core import Node
from karpenter_linode.model.linode import LinodeType, Region
from karpenter_linode.model.meta import ObjectMeta, find_condition
from karpenter_linode.model.resource import ResourceSlice
from karpenter_linode.ports import ConflictError, GoneError, KubeError, TooManyRequestsError
from karpenter_linode.sim.clock import VirtualClock
from karpenter_linode.sim.cluster import Account, EmbeddedCluster
from karpenter_linode.sim.faults import (
    Driver,
    Fault,
    KubeCalls,
    KubeLatency,
    KubeWatches,
    LinodeCalls,
    LinodeSoldOut,
    NodeStop,
    play_fault,
)
from karpenter_linode.sim.loop import run_virtual
from karpenter_linode.sim.nvidia import DriverBehaviour

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

GPU = LinodeType(id="g2-gpu-rtx4000a1-s", class_="gpu", vcpus=4, memory=16384, disk=524288, gpus=1)
POOLS = "/lke/clusters/561146/pools"


def run(story: Callable[[EmbeddedCluster], Awaitable[None]]) -> EmbeddedCluster:
    async def main() -> EmbeddedCluster:
        clock = VirtualClock(asyncio.get_running_loop(), datetime(2026, 1, 1, tzinfo=UTC))
        world = EmbeddedCluster(clock, Account((GPU,), (Region("us-ord"),)), seed=1)
        world.start()
        await story(world)
        await world.stop()
        return world

    return run_virtual(main())


def strike(world: EmbeddedCluster, fault: Fault) -> None:
    play_fault(world, fault)
    assert world.journal.entries[-1].kind == "fault"


def named(name: str) -> Node:
    return Node(metadata=ObjectMeta(name=name))


def linode(world: EmbeddedCluster) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        transport=httpx2.ASGITransport(world.linode_app),
        base_url="http://linode/v4beta",
        headers={"Authorization": "Bearer any"},
    )


@pytest.mark.parametrize(
    ("status", "error"), [(409, ConflictError), (429, TooManyRequestsError), (500, KubeError), (503, KubeError)]
)
def test_the_nth_write_fails_and_changes_nothing(status: int, error: type[KubeError]) -> None:
    async def story(world: EmbeddedCluster) -> None:
        api = world.kube_api()
        strike(world, KubeCalls(verb="create", resource="nodes", status=status, skip=1))
        await api.create(named("a"))
        with pytest.raises(error) as failed:
            await api.create(named("b"))
        assert failed.value.status == status
        await api.create(named("c"))
        assert [node.name for node in (await api.list(Node)).items] == ["a", "c"]

    run(story)


def test_a_lost_answer_leaves_the_write_behind() -> None:
    async def story(world: EmbeddedCluster) -> None:
        api = world.kube_api()
        strike(world, KubeCalls(verb="create", status=504, lost_answer=True))
        with pytest.raises(KubeError):
            await api.create(named("a"))
        assert (await api.get(Node, "a")).name == "a"

    run(story)


def test_a_slow_server_makes_calls_and_events_late() -> None:
    async def story(world: EmbeddedCluster) -> None:
        strike(world, KubeLatency((5.0, 5.0), watch_lag=7.0))
        api, began = world.kube_api(), world.clock.now()
        listing = await api.list(Node)
        assert (world.clock.now() - began).total_seconds() == pytest.approx(5.0)
        seen: list[float] = []

        async def watch() -> None:
            async for event in api.watch(Node, listing.resource_version):
                assert event.type == "ADDED"
                seen.append((world.clock.now() - began).total_seconds())

        watcher = asyncio.create_task(watch())
        await world.clock.sleep(10)
        world.apply([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}])
        await world.clock.sleep(10)
        watcher.cancel()
        assert seen == [pytest.approx(22.0)]

    run(story)


@pytest.mark.parametrize(("effect", "ended"), [("drop", True), ("silence", False), ("compact", True)])
def test_watches_break_in_three_ways(effect: str, ended: bool) -> None:
    async def story(world: EmbeddedCluster) -> None:
        api = world.kube_api()
        version = (await api.list(Node)).resource_version
        seen: list[Any] = []

        async def watch() -> None:
            seen.extend([event async for event in api.watch(Node, version)])

        watcher = asyncio.create_task(watch())
        await world.clock.sleep(1)
        world.apply([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}}])
        await api.create(named("before"))
        await world.clock.sleep(1)
        strike(world, KubeWatches(effect, "nodes"))
        await api.create(named("after"))
        await world.clock.sleep(10)
        assert watcher.done() is ended
        watcher.cancel()
        if effect == "compact":
            with pytest.raises(GoneError):
                [event async for event in api.watch(Node, version)]

    run(story)


def test_a_plan_is_sold_out_and_comes_back() -> None:
    async def story(world: EmbeddedCluster) -> None:
        async with linode(world) as http:
            strike(world, LinodeSoldOut(GPU.id, "us-ord"))
            refused = await http.post(POOLS, json={"type": GPU.id, "count": 1})
            assert refused.status_code == 400
            assert "Insufficient capacity" in refused.text
            strike(world, LinodeSoldOut(GPU.id, "us-ord", sold_out=False))
            assert (await http.post(POOLS, json={"type": GPU.id, "count": 1})).status_code == 200

    run(story)


def test_calls_of_the_cloud_fail_refuse_and_lose_their_answer() -> None:
    async def story(world: EmbeddedCluster) -> None:
        async with linode(world) as http:
            strike(world, LinodeCalls("GET", ".*pools", status=429, headers={"Retry-After": "7"}))
            limited = await http.get(POOLS)
            assert (limited.status_code, limited.headers["Retry-After"]) == (429, "7")
            strike(world, LinodeCalls("GET", ".*pools", status=0))
            with pytest.raises(httpx2.HTTPError):
                await http.get(POOLS)
            strike(world, LinodeCalls("POST", ".*pools", lost_answer=True))
            with pytest.raises(httpx2.HTTPError):
                await http.post(POOLS, json={"type": GPU.id, "count": 1})
            assert len((await http.get(POOLS)).json()["data"]) == 1

    run(story)


async def a_node(world: EmbeddedCluster) -> str:
    async with linode(world) as http:
        await http.post(POOLS, json={"type": GPU.id, "count": 1})
    await world.clock.sleep(400)
    return next(iter(world.store.all(Node))).name


def test_a_node_falls_silent() -> None:
    async def story(world: EmbeddedCluster) -> None:
        name = await a_node(world)
        strike(world, NodeStop())
        await world.clock.sleep(60)
        node = world.store.find(Node, name)
        assert node is not None
        ready = find_condition(node.status.conditions, "Ready")
        assert ready is not None
        assert ready.status == "Unknown"

    run(story)


def test_the_driver_can_be_told_to_publish_nothing() -> None:
    async def story(world: EmbeddedCluster) -> None:
        strike(world, Driver(DriverBehaviour(publishing="never")))
        await a_node(world)
        assert list(world.store.all(ResourceSlice)) == []

    run(story)
