"""The kept story, events, metrics, and the agenda."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from karpenter_linode.model.core import Event, Node
from karpenter_linode.model.quantity import Quantity
from karpenter_linode.sim.journal import JournalLogger
from karpenter_linode.sim.metrics import MemoryMetrics

if TYPE_CHECKING:
    from karpenter_linode.ports import EventSink, Logger, Metrics

Run = Callable[..., Any]


def as_logger(logger: Logger) -> Logger:
    return logger


def as_sink(sink: EventSink) -> EventSink:
    return sink


def as_metrics(metrics: Metrics) -> Metrics:
    return metrics


def test_log_lines_carry_offset_subject_and_fields(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.clock.sleep(90)
        log = as_logger(world.logger())
        node = world.boot() or world.node()
        log.info("launched nodeclaim", NodeClaim="gpu-x", limit=Quantity.parse("2Gi"), took=timedelta(seconds=3))
        log.error("failed", error=ValueError("broken"), node=node)
        launched, failed = world.journal.entries[-2:]
        assert (launched.component, launched.kind, launched.level) == ("karpenter", "log", "info")
        assert launched.subject == "NodeClaim gpu-x"
        assert launched.fields == {"NodeClaim": "gpu-x", "limit": "2Gi", "took": 3.0}
        assert world.journal.offset(launched) == timedelta(seconds=90)
        assert failed.fields == {"error": "broken", "node": "node-a"}

    run(play)


def test_bound_fields_follow_and_debug_can_be_left_out(run: Run) -> None:
    async def play(world: Any) -> None:
        log = JournalLogger(world.journal, debug=False).bind(controller="provisioner")
        log.debug("unseen")
        log.warning("seen", Pod="default/p")
        (entry,) = world.journal.entries
        assert entry.fields == {"controller": "provisioner", "Pod": "default/p"}
        assert entry.subject == "Pod default/p"

    run(play)


def test_a_story_tells_of_one_object_only(run: Run) -> None:
    async def play(world: Any) -> None:
        journal = world.journal
        journal.step("a", "Pod default/web-1", "created")
        journal.step("b", "NodeClaim gpu-1", "made for default/web-1")
        journal.step("c", "NodeClaim gpu-2", "made", pods=["default/web-1", "default/other"])
        journal.step("d", "Pod default/web-10", "created")
        journal.step("e", "Pod default/my-web-1", "created")
        assert [entry.component for entry in journal.story("web-1")] == ["a", "b", "c"]
        assert [entry.component for entry in journal.story("default/web-1")] == ["a", "b", "c"]

    run(play)


def test_the_journal_is_lines_of_json(run: Run) -> None:
    async def play(world: Any) -> None:
        world.journal.step("kubelet", "Node n", "ready", delay=1.5)
        assert world.journal.to_json_lines() == (
            b'{"at":"2026-01-01T00:00:00Z","component":"kubelet","kind":"step","subject":"Node n","message":"ready",'
            b'"fields":{"delay":1.5}}\n'
        )

    run(play)


def events(world: Any) -> list[Event]:
    return [event for event in world.store.all(Event) if event.source.component == "karpenter"]


def test_events_are_stored_with_their_object(run: Run) -> None:
    async def play(world: Any) -> None:
        world.boot()
        as_sink(world.events()).publish(world.node(), "Warning", "FailedDraining", "pods are waiting")
        (event,) = events(world)
        assert (event.involved_object.kind, event.involved_object.name) == ("Node", "node-a")
        assert (event.type, event.reason, event.message, event.count) == (
            "Warning",
            "FailedDraining",
            "pods are waiting",
            1,
        )
        assert event.namespace == "default"

    run(play)


def test_equal_events_are_dropped_for_a_while_and_then_counted(run: Run) -> None:
    async def play(world: Any) -> None:
        world.boot()
        sink = world.events()
        for wait in (0, 60, 70):
            await world.clock.sleep(wait)
            sink.publish(world.node(), "Normal", "Waiting", "still waiting", dedupe=("n",), dedupe_seconds=120)
        (event,) = events(world)
        assert event.count == 2
        sink.publish(world.node(), "Normal", "waiting", "other words", dedupe=("n",), dedupe_seconds=120)
        assert len(events(world)) == 1
        sink.publish(world.node(), "Normal", "Waiting", "of another", dedupe=("m",), dedupe_seconds=120)
        assert len(events(world)) == 2

    run(play)


def test_a_counted_event_that_was_deleted_is_told_anew(run: Run) -> None:
    async def play(world: Any) -> None:
        world.boot()
        sink = world.events()
        sink.publish(world.node(), "Normal", "R", "m", dedupe_seconds=1)
        (event,) = events(world)
        world.delete("v1", "Event", event.name)
        await world.clock.sleep(5)
        sink.publish(world.node(), "Normal", "R", "m", dedupe_seconds=1)
        assert len(events(world)) == 1

    run(play)


def test_metrics_add_up_by_label() -> None:
    metrics = MemoryMetrics()
    port = as_metrics(metrics)
    port.increment("nodes_created_total", {"nodepool": "a"})
    port.increment("nodes_created_total", {"nodepool": "b"}, 2)
    port.observe("seconds", {}, 1.5)
    port.observe("seconds", {}, 2.5)
    port.set_gauge("depth", {}, 3)
    port.set_gauge("depth", {}, 1)
    assert metrics.counter("nodes_created_total") == 3
    assert metrics.counter("nodes_created_total", nodepool="b") == 2
    assert metrics.counter("never") == 0
    assert (metrics.samples["seconds"][()].count, metrics.samples["seconds"][()].sum) == (2, 4.0)
    assert metrics.gauges["depth"][()] == 1


def test_an_action_that_fails_is_raised_at_the_end(run: Run) -> None:
    def fail() -> None:
        raise ZeroDivisionError("in the agenda")

    async def play(world: Any) -> None:
        world.agenda.after(1, fail)
        await world.clock.sleep(2)

    with pytest.raises(ZeroDivisionError, match="in the agenda"):
        run(play)


def test_pending_counts_what_is_still_to_come(run: Run) -> None:
    async def play(world: Any) -> None:
        done: list[str] = []
        appointment = world.agenda.after(1, done.append, "a")
        world.agenda.after(1, done.append, "b")
        world.agenda.after(1, done.append, "c", background=True)
        assert world.pending == 2
        appointment.cancel()
        await world.clock.sleep(2)
        assert world.pending == 0
        assert done == ["b", "c"]

    run(play)


def test_subjects_prefer_the_most_telling_field(run: Run) -> None:
    async def play(world: Any) -> None:
        world.logger().info("x", Node="n", Pod="default/p")
        assert world.journal.entries[-1].subject == "Pod default/p"
        assert world.store.find(Node, "n") is None

    run(play)
