from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from karpenter_linode.controllers.effects import Executor
from karpenter_linode.lifecycle.effects import (
    CloudDelete,
    Count,
    Create,
    Delete,
    Evict,
    Fail,
    LogLine,
    Observe,
    Patch,
    PublishEvent,
    Requeue,
)
from karpenter_linode.model.core import Node
from karpenter_linode.ports import ForbiddenError
from karpenter_linode.sim.kube_faults import FaultRule


def label(value: str, lock: str = "", name: str = "n") -> Patch:
    return Patch(Node, name, {"metadata": {"labels": {"a": value}}}, lock=lock)


def test_a_patch_is_seen_at_once_without_waiting_for_the_watch(lab: Any, node: Any) -> None:
    async def story(world: Any) -> None:
        world.runtime.observe(world.create(node()))
        heard = []
        world.runtime.hub.subscribe(Node, heard.append)
        await Executor(world.runtime, "test").carry_out([label("1")])
        assert world.runtime.state.get(Node, "n").metadata.labels == {"a": "1"}
        assert [change.new.metadata.labels for change in heard] == [{"a": "1"}]

    lab(story)


def test_a_failed_lock_drops_the_rest(lab: Any, node: Any) -> None:
    async def story(world: Any) -> None:
        stale = world.create(node()).metadata.resource_version
        executor = Executor(world.runtime, "test")
        await executor.carry_out([label("1")])
        done = await executor.carry_out([label("2", stale), LogLine("info", "never said")])
        assert done.conflict
        assert world.store.find(Node, "n").metadata.labels == {"a": "1"}
        assert world.notebook.lines == []

    lab(story)


def test_our_own_write_does_not_break_our_lock(lab: Any, node: Any) -> None:
    async def story(world: Any) -> None:
        version = world.create(node()).metadata.resource_version
        taint = Patch(Node, "n", {"spec": {"unschedulable": True}}, lock=version)
        done = await Executor(world.runtime, "test").carry_out([label("1", version), taint])
        assert not done.conflict
        assert world.store.find(Node, "n").spec.unschedulable

    lab(story)


def test_a_foreign_write_in_between_does(lab: Any, node: Any) -> None:
    async def story(world: Any) -> None:
        version = world.create(node()).metadata.resource_version
        other = world.create(node("other")).metadata.resource_version
        executor = Executor(world.runtime, "test")
        await executor.carry_out([label("1")])
        done = await executor.carry_out([label("1", other, "other"), label("2", version)])
        assert done.conflict

    lab(story)


def test_what_is_missing_is_done(lab: Any) -> None:
    async def story(world: Any) -> None:
        effects = [label("1"), Delete(Node, "n"), LogLine("info", "went on", {"x": 1})]
        done = await Executor(world.runtime, "test").carry_out(effects)
        assert not done.conflict
        assert world.notebook.lines == [("went on", {"controller": "test", "x": 1})]

    lab(story)


def test_another_object_of_that_name_is_not_deleted(lab: Any, node: Any) -> None:
    async def story(world: Any) -> None:
        world.create(node())
        done = await Executor(world.runtime, "test").carry_out([Delete(Node, "n", uid="another")])
        assert done.conflict
        assert world.store.find(Node, "n") is not None

    lab(story)


def test_creating_twice_is_done(lab: Any, node: Any) -> None:
    async def story(world: Any) -> None:
        made = world.create(node())
        done = await Executor(world.runtime, "test").carry_out([Create(made)])
        assert not done.conflict

    lab(story)


def test_everything_else_is_told_or_handed_back(lab: Any, node: Any) -> None:
    async def story(world: Any) -> None:
        made, queued = world.create(node()), []
        done = await Executor(world.runtime, "test", queued.append).carry_out(
            [
                PublishEvent(made, "Normal", "Because", "so it is"),
                Count("c", {"a": "b"}, 2),
                Observe("h", {}, timedelta(seconds=3)),
                Evict((("default", "p", "u"),)),
                Fail("it failed"),
                Requeue(timedelta(seconds=9)),
                Requeue(timedelta(seconds=5)),
                CloudDelete("linode://1"),
            ]
        )
        assert world.notebook.events == [("n", "Because", "so it is")]
        assert world.metrics.counter("c", a="b") == 2
        assert world.metrics.samples["h"][()].sum == 3
        assert len(queued) == 1
        assert done.failures == ("it failed",)
        assert done.requeue == timedelta(seconds=5)
        assert done.question == CloudDelete("linode://1")

    lab(story)


def test_a_refusal_is_not_swallowed(lab: Any, node: Any) -> None:
    async def story(world: Any) -> None:
        world.create(node())
        world.faults.rules.append(FaultRule(lambda call: call.verb == "patch", lambda _: ForbiddenError("no")))
        with pytest.raises(ForbiddenError):
            await Executor(world.runtime, "test").carry_out([label("1")])

    lab(story)
