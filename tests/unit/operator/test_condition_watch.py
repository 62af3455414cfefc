"""Conditions that turn are counted and told; so are deletions that end."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from karpenter_linode.controllers.hub import Change
from karpenter_linode.controllers.runtime import Runtime
from karpenter_linode.model import kinds
from karpenter_linode.operator.condition_watch import ConditionWatch
from karpenter_linode.operator.metric_table import METRICS
from karpenter_linode.sim.clock import VirtualClock
from karpenter_linode.sim.loop import run_virtual
from karpenter_linode.sim.metrics import MemoryMetrics

START = datetime(2026, 1, 1, tzinfo=UTC)
LABELS = {"karpenter.sh/nodepool": "gpu", "karpenter.k8s.linode/linodenodeclass": "default"}
EXTRA = {"karpenter_sh_nodepool": "gpu", "karpenter_k8s_linode_linodenodeclass": "default"}
ALL = {"group": "karpenter.sh", "kind": "NodeClaim"}


class Told:
    """Events that were published."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []

    def publish(self, obj: Any, event_type: str, reason: str, message: str, **_: Any) -> None:
        assert event_type == "Normal"
        self.events.append((obj.key, reason, message))


class World:
    def __init__(self, *, leads: bool = True) -> None:
        self.metrics, self.told = MemoryMetrics(), Told()
        unused: Any = None
        self.clock = VirtualClock(asyncio.get_running_loop(), START)
        self.runtime = Runtime(unused, unused, self.clock, unused, self.told, self.metrics, unused)
        ConditionWatch(self.runtime, lambda: leads)

    def change(self, old: Any, new: Any) -> None:
        self.runtime.hub.publish(Change(old, new))


def claim(uid: str = "u", *, finalizers: tuple[str, ...] = (), deleted: bool = False, **conditions: Any) -> Any:
    """A NodeClaim with conditions ``(status, reason, message, seconds)`` by type."""
    written = [
        {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": (START + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z"),
        }
        for kind, (status, reason, message, seconds) in conditions.items()
    ]
    metadata = {"name": "gpu-1", "uid": uid, "labels": LABELS, "finalizers": list(finalizers)}
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return kinds.from_manifest(
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": metadata,
            "status": {"conditions": written},
        }
    )


WAITING = ("Unknown", "AwaitingReconciliation", "object is awaiting reconciliation", 0)
DONE = ("True", "Launched", "", 8)


def test_a_condition_that_turns_is_counted_and_told() -> None:
    async def go() -> None:
        world = World()
        world.change(None, claim(Launched=WAITING))
        assert world.told.events == []
        world.change(claim(Launched=WAITING), claim(Launched=DONE))
        world.change(claim(Launched=DONE), claim(Launched=DONE))
        world.change(claim(Launched=DONE), claim(Launched=("False", "Gone", "it went", 20)))
        assert world.told.events == [
            (
                "gpu-1",
                "Launched",
                "Status condition transitioned, Type: Launched, Status: Unknown -> True, Reason: Launched",
            ),
            (
                "gpu-1",
                "Launched",
                "Status condition transitioned, Type: Launched, Status: True -> False, Reason: Gone, Message: it went",
            ),
        ]
        for prefix, extra in (("operator_nodeclaim_", EXTRA), ("operator_", ALL)):
            counter = f"{prefix}status_condition_transitions_total"
            assert world.metrics.counter(counter, type="Launched") == 3
            assert world.metrics.counter(counter, status="True", reason="Launched", **extra) == 1
            samples = {
                dict(key)["status"]: sample.sum
                for key, sample in world.metrics.samples[f"{prefix}status_condition_transition_seconds"].items()
            }
            assert samples == {"Unknown": 8, "True": 12}
        for name, series in {**world.metrics.counters, **world.metrics.samples}.items():
            for key in series:
                assert sorted(METRICS[name].labels) == [label for label, _ in key], name

    run_virtual(go())


def test_an_end_is_measured_and_its_finalizers_are_told() -> None:
    async def go() -> None:
        world = World()
        await world.clock.sleep(42)
        ours = claim(finalizers=("karpenter.sh/termination", "other/x"), deleted=True)
        world.change(ours, claim(finalizers=("other/x",), deleted=True))
        world.change(claim(finalizers=("other/x",), deleted=True), None)
        assert world.told.events == [
            ("gpu-1", "Finalized", "Finalized karpenter.sh/termination"),
            ("gpu-1", "Finalized", "Finalized other/x"),
        ]
        samples = world.metrics.samples["operator_nodeclaim_termination_duration_seconds"]
        assert [(dict(key), sample.sum) for key, sample in samples.items()] == [(EXTRA, 42)]

    run_virtual(go())


def test_a_finalizer_that_is_taken_off_a_living_object_is_no_end() -> None:
    async def go() -> None:
        world = World()
        world.change(claim(finalizers=("a/b",)), claim())
        assert world.told.events == []

    run_virtual(go())


def test_a_new_object_under_an_old_name_has_no_past() -> None:
    async def go() -> None:
        world = World()
        world.change(claim("old", Launched=DONE), claim("new", Launched=WAITING))
        assert world.told.events == []

    run_virtual(go())


def test_a_replica_that_stands_by_keeps_quiet() -> None:
    async def go() -> None:
        world = World(leads=False)
        world.change(claim(Launched=WAITING), claim(Launched=DONE))
        assert (world.told.events, world.metrics.counters) == ([], {})

    run_virtual(go())


def test_nodes_are_told_with_their_own_names_alone() -> None:
    def node(status: str, seconds: int) -> Any:
        at = (START + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")
        condition = {"type": "Ready", "status": status, "reason": "KubeletReady", "lastTransitionTime": at}
        metadata = {"name": "n", "uid": "n"}
        return kinds.from_manifest(
            {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"conditions": [condition]}}
        )

    async def go() -> None:
        world = World()
        world.change(node("False", 0), node("True", 30))
        assert set(world.metrics.counters) == {"operator_node_status_condition_transitions_total"}
        assert set(world.metrics.samples) == {"operator_node_status_condition_transition_seconds"}

    run_virtual(go())
