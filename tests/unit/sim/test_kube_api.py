"""The API server as a controller sees it: watches, lag, eviction, the call log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from karpenter_linode.model.core import Node, Pod
from karpenter_linode.model.karpenter import NodePool
from karpenter_linode.model.meta import ObjectMeta
from karpenter_linode.ports import GoneError, KubeApi, KubeError, NotFoundError, TooManyRequestsError
from karpenter_linode.sim.resource_types import type_of
from karpenter_linode.sim.watches import History

Run = Callable[..., Any]


async def collect(api: Any, kind: type[Any], version: str, into: list[tuple[str, str]]) -> None:
    async for event in api.watch(kind, version):
        name = event.object.name
        into.append((event.type, name))


def implements(api: KubeApi) -> KubeApi:
    return api


def test_the_port_is_implemented_and_round_trips(run: Run) -> None:
    async def play(world: Any) -> None:
        api = implements(world.kube_api())
        created = await api.create(Node(metadata=ObjectMeta(name="n", labels={"a": "b"})))
        assert created.uid
        assert await api.get(Node, "n") == created
        patched = await api.patch(Node, "n", {"spec": {"unschedulable": True}})
        assert patched.spec.unschedulable
        assert (await api.list(Node, label_selector="a=b")).items == (patched,)
        assert (await api.list(Node, label_selector="a=c")).items == ()
        await api.delete(Node, "n", uid=created.uid)
        with pytest.raises(NotFoundError):
            await api.get(Node, "n")

    run(play)


def test_a_watch_tells_every_change_in_order(run: Run) -> None:
    async def play(world: Any) -> None:
        api, seen = world.kube_api(), []
        listing = await api.list(Node)
        watcher = asyncio.create_task(collect(api, Node, listing.resource_version, seen))
        await world.clock.sleep(1)
        await api.create(Node(metadata=ObjectMeta(name="n", finalizers=("x/y",))))
        await api.patch(Node, "n", {"metadata": {"labels": {"a": "b"}}})
        await api.delete(Node, "n")
        await api.patch(Node, "n", {"metadata": {"finalizers": None}})
        await world.clock.sleep(1)
        watcher.cancel()
        assert [kind for kind, _ in seen] == ["ADDED", "MODIFIED", "MODIFIED", "DELETED"]

    run(play)


def test_a_watch_resumes_after_the_version_it_is_given(run: Run) -> None:
    async def play(world: Any) -> None:
        api, seen = world.kube_api(), []
        for name in ("a", "b", "c"):
            await api.create(Node(metadata=ObjectMeta(name=name)))
        middle = (await api.get(Node, "b")).metadata.resource_version
        watcher = asyncio.create_task(collect(api, Node, middle, seen))
        await world.clock.sleep(1)
        watcher.cancel()
        assert seen == [("ADDED", "c")]

    run(play)


def test_a_compacted_version_is_gone(run: Run) -> None:
    async def play(world: Any) -> None:
        api = world.kube_api()
        old = (await api.list(Node)).resource_version
        await api.create(Node(metadata=ObjectMeta(name="n")))
        world.store.history(type_of(Node)).compact()
        with pytest.raises(GoneError, match="too old resource version"):
            await collect(api, Node, old, [])
        seen: list[tuple[str, str]] = []
        current = (await api.list(Node)).resource_version
        watcher = asyncio.create_task(collect(api, Node, current, seen))
        await api.create(Node(metadata=ObjectMeta(name="m")))
        await world.clock.sleep(1)
        watcher.cancel()
        assert seen == [("ADDED", "m")]

    run(play)


def test_history_is_bounded(run: Run) -> None:
    async def play(world: Any) -> None:
        history = History(world.clock, limit=3)
        changes = world.store.history(type_of(Node))
        for name in ("a", "b", "c", "d"):
            world.add("v1", "Node", name)
        for change in list(changes._changes)[-4:]:
            history.add(change)
        first = next(iter(history._changes)).version
        history.watch(first)
        with pytest.raises(GoneError):
            history.watch(0)

    run(play)


def test_changes_reach_a_watch_late(run: Run) -> None:
    async def play(world: Any) -> None:
        api, at = world.kube_api(), []
        world.faults.watch_lag = 2.0

        async def note() -> None:
            async for event in api.watch(Node, world.store.resource_version):
                assert event.type == "ADDED"
                at.append(world.clock.now())

        watcher = asyncio.create_task(note())
        await world.clock.sleep(1)
        written = world.clock.now()
        world.add("v1", "Node", "n")
        await world.clock.sleep(5)
        watcher.cancel()
        assert [(moment - written).total_seconds() for moment in at] == [2.0]

    run(play)


def test_bookmarks_tell_a_quiet_watch_that_it_lives(run: Run) -> None:
    async def play(world: Any) -> None:
        api, seen = world.kube_api(), []

        async def note() -> None:
            async for event in api.watch(NodePool, world.store.resource_version):
                seen.append((event.type, event.object, event.resource_version))
                if event.type == "BOOKMARK":
                    break

        watcher = asyncio.create_task(note())
        world.add("v1", "Node", "other-kind")
        await world.clock.sleep(130)
        assert watcher.done()
        assert seen == [("BOOKMARK", None, world.store.resource_version)]

    run(play)


def test_a_dropped_watch_ends_and_a_silent_one_does_not(run: Run) -> None:
    async def play(world: Any) -> None:
        api, seen = world.kube_api(), []
        history = world.store.history(type_of(Node))
        dropped = asyncio.create_task(collect(api, Node, world.store.resource_version, seen))
        await world.clock.sleep(1)
        history.drop_watches()
        await asyncio.wait_for(dropped, 1)
        silent = asyncio.create_task(collect(api, Node, world.store.resource_version, seen))
        await world.clock.sleep(1)
        history.silence_watches()
        world.add("v1", "Node", "n")
        await world.clock.sleep(10)
        assert not silent.done()
        assert seen == []
        silent.cancel()

    run(play)


def test_a_reader_that_leaves_is_forgotten(run: Run) -> None:
    async def play(world: Any) -> None:
        watcher = asyncio.create_task(collect(world.kube_api(), Node, world.store.resource_version, []))
        await world.clock.sleep(1)
        history = world.store.history(type_of(Node))
        assert len(history._watches) == 1
        watcher.cancel()
        await world.clock.sleep(1)
        assert history._watches == []

    run(play)


def test_every_call_takes_time_and_is_written_down(run: Run) -> None:
    async def play(world: Any) -> None:
        api = world.kube_api("tester")
        before = world.clock.now()
        with pytest.raises(NotFoundError):
            await api.patch(NodePool, "none", {}, subresource="status")
        with pytest.raises(NotFoundError):
            await api.evict("none", "default")
        assert world.clock.now() > before
        assert [(c.user, c.verb, c.group, c.resource, c.subresource, c.name) for c in api.calls] == [
            ("tester", "patch", "karpenter.sh", "nodepools", "status", "none"),
            ("tester", "create", "", "pods", "eviction", "none"),
        ]

    run(play)


def budget(world: Any, name: str, **spec: Any) -> None:
    world.add("policy/v1", "PodDisruptionBudget", name, spec={"selector": {"matchLabels": {"app": "web"}}, **spec})


def test_eviction_without_a_budget_deletes(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        world.add_pod()
        await world.clock.sleep(60)
        await world.kube_api().evict("pod", "default", uid=world.pod().uid)
        assert world.pod().metadata.deletion_timestamp is not None
        await world.clock.sleep(60)
        assert world.pod() is None

    run(play)


def test_a_budget_refuses_until_a_pod_is_healthy_again(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        for name in ("a", "b"):
            world.add_pod(name, metadata={"labels": {"app": "web"}})
        budget(world, "web", minAvailable=1)
        await world.clock.sleep(60)
        api = world.kube_api()
        await api.evict("a", "default")
        with pytest.raises(TooManyRequestsError, match="disruption budget"):
            await api.evict("b", "default")
        await world.clock.sleep(60)
        world.add_pod("c", metadata={"labels": {"app": "web"}})
        await world.clock.sleep(60)
        await api.evict("b", "default")

    run(play)


def test_two_budgets_over_one_pod_are_an_error(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        world.add_pod(metadata={"labels": {"app": "web"}})
        budget(world, "one", minAvailable=0)
        budget(world, "two", minAvailable=0)
        await world.clock.sleep(60)
        with pytest.raises(KubeError, match="more than one PodDisruptionBudget") as refused:
            await world.kube_api().evict("pod", "default")
        assert refused.value.status == 500

    run(play)


def test_pods_that_do_not_run_are_evicted_without_asking(run: Run) -> None:
    async def play(world: Any) -> None:
        world.add_pod(metadata={"labels": {"app": "web"}})
        budget(world, "web", minAvailable=1)
        await world.clock.sleep(10)
        await world.kube_api().evict("pod", "default")
        assert world.store.find(Pod, "pod", "default") is None

    run(play)
