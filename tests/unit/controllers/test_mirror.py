from __future__ import annotations

import asyncio
from typing import Any

from karpenter_linode.controllers.mirror import Mirror
from karpenter_linode.model.core import Node
from karpenter_linode.ports import GoneError, KubeError
from karpenter_linode.sim.kube_faults import FaultRule
from karpenter_linode.sim.resource_types import type_of


async def started(world: Any) -> tuple[asyncio.Task[None], list[Any]]:
    heard: list[Any] = []
    world.runtime.hub.subscribe(Node, heard.append)
    task = asyncio.create_task(Mirror(world.runtime, Node).run())
    await world.clock.sleep(1)
    return task, heard


def names(world: Any) -> list[str]:
    return [node.name for node in world.runtime.state.all(Node)]


def told(heard: list[Any]) -> list[tuple[str, str]]:
    def kind(change: Any) -> str:
        return "gone" if change.new is None else "new" if change.old is None else "changed"

    return [(kind(change), change.object.name) for change in heard]


def test_what_is_there_is_told_as_listed_and_what_comes_as_news(lab: Any, node: Any) -> None:
    async def story(world: Any) -> None:
        world.create(node("a"))
        task, heard = await started(world)
        world.create(node("b"))
        await world.clock.sleep(1)
        assert told(heard) == [("new", "a"), ("new", "b")]
        assert [change.listed for change in heard] == [True, False]
        task.cancel()

    lab(story)


def test_deletions_are_mirrored(lab: Any, node: Any) -> None:
    async def story(world: Any) -> None:
        world.create(node("a"))
        task, heard = await started(world)
        world.store.delete(type_of(Node), "a")
        await world.clock.sleep(1)
        assert names(world) == []
        assert told(heard)[-1] == ("gone", "a")
        task.cancel()

    lab(story)


def test_after_an_expired_watch_nothing_is_lost_and_nothing_told_twice(lab: Any, node: Any) -> None:
    async def story(world: Any) -> None:
        for name in ("kept", "gone"):
            world.create(node(name))
        task, heard = await started(world)
        history = world.store.history(type_of(Node))
        world.faults.rules.append(FaultRule(lambda call: call.verb == "watch", lambda _: KubeError("down"), times=3))
        history.drop_watches()
        await world.clock.sleep(0.1)
        world.store.delete(type_of(Node), "gone")
        world.create(node("new"))
        history.compact()
        await world.clock.sleep(60)
        assert names(world) == ["kept", "new"]
        assert told(heard) == [("new", "gone"), ("new", "kept"), ("gone", "gone"), ("new", "new")]
        task.cancel()

    lab(story)


def test_a_dropped_connection_is_resumed_where_it_was(lab: Any, node: Any) -> None:
    async def story(world: Any) -> None:
        task, heard = await started(world)
        world.store.history(type_of(Node)).drop_watches()
        world.create(node("while-away"))
        await world.clock.sleep(5)
        assert told(heard) == [("new", "while-away")]
        task.cancel()

    lab(story)


def test_a_silent_watch_is_opened_again(lab: Any, node: Any) -> None:
    async def story(world: Any) -> None:
        task, _ = await started(world)
        world.store.history(type_of(Node)).silence_watches()
        world.create(node("unheard"))
        await world.clock.sleep(100)
        assert names(world) == []
        await world.clock.sleep(30)
        assert names(world) == ["unheard"]
        task.cancel()

    lab(story)


def test_a_server_that_is_down_is_asked_again_with_growing_pauses(lab: Any, node: Any) -> None:
    async def story(world: Any) -> None:
        world.create(node("a"))
        world.faults.rules.append(FaultRule(lambda call: call.verb == "list", lambda _: KubeError("down"), times=4))
        task = asyncio.create_task(Mirror(world.runtime, Node).run())
        await world.clock.sleep(60)
        assert names(world) == ["a"]
        pauses = [fields["delay"] for message, fields in world.notebook.lines if "watching failed" in message]
        assert len(pauses) == 4
        assert pauses == sorted(pauses)
        task.cancel()

    lab(story)


def gone(times: int) -> FaultRule:
    return FaultRule(lambda call: call.verb == "watch", lambda _: GoneError("too old"), times=times)


def test_a_watch_that_expires_is_listed_at_once_and_with_growing_pauses_when_it_expires_again(
    lab: Any, node: Any
) -> None:
    async def story(world: Any) -> None:
        world.create(node("a"))
        world.faults.rules.append(gone(6))
        task = asyncio.create_task(Mirror(world.runtime, Node).run())
        await world.clock.sleep(60)
        pauses = [fields["delay"] for message, fields in world.notebook.lines if "watching failed" in message]
        assert len(pauses) == 5
        assert pauses == sorted(pauses)
        assert pauses[0] < 1
        assert pauses[-1] > 10
        world.create(node("b"))
        await world.clock.sleep(1)
        assert names(world) == ["a", "b"]
        task.cancel()

    lab(story)


def test_an_event_between_ends_a_row_of_failures(lab: Any, node: Any) -> None:
    async def story(world: Any) -> None:
        world.faults.rules.append(gone(3))
        task = asyncio.create_task(Mirror(world.runtime, Node).run())
        await world.clock.sleep(30)
        world.create(node("a"))
        await world.clock.sleep(1)
        pauses = sum("watching failed" in message for message, _ in world.notebook.lines)
        history = world.store.history(type_of(Node))
        world.faults.rules.append(gone(1))
        history.drop_watches()
        world.create(node("b"))
        await world.clock.sleep(0.3)
        assert names(world) == ["a", "b"]
        assert sum("watching failed" in message for message, _ in world.notebook.lines) == pauses
        task.cancel()

    lab(story)


def test_two_mirrors_of_one_seed_behave_alike(lab: Any, node: Any) -> None:
    async def story(world: Any) -> list[tuple[str, str]]:
        world.create(node("a"))
        task, heard = await started(world)
        world.create(node("b"))
        await world.clock.sleep(1)
        task.cancel()
        return told(heard)

    assert lab(story) == lab(story)
