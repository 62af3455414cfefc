"""How long pods wait, counted when they stop to."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from karpenter_linode.controllers.hub import Change
from karpenter_linode.controllers.pod_times import PodClock
from karpenter_linode.model import kinds
from karpenter_linode.sim.clock import VirtualClock
from karpenter_linode.sim.loop import run_virtual
from karpenter_linode.sim.metrics import MemoryMetrics

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

START = datetime(2026, 1, 1, tzinfo=UTC)
PREFIX = "karpenter_pods_"
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


def after(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def pod(phase: str = "Pending", node: str = "", uid: str = "u", **reached: float) -> Any:
    """A pod made at the start; conditions by the second that they came to hold."""
    held = [{"type": kind, "status": "True", "lastTransitionTime": after(seconds)} for kind, seconds in reached.items()]
    return kinds.from_manifest(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "team", "uid": uid, "creationTimestamp": after(0)},
            "spec": {"nodeName": node},
            "status": {"phase": phase, "conditions": held or [UNSCHEDULABLE]},
        }
    )


def told(story: Callable[[PodClock, VirtualClock], Awaitable[None]]) -> dict[str, float]:
    """Durations by metric after a story."""

    async def go() -> dict[str, float]:
        clock, metrics = VirtualClock(asyncio.get_running_loop(), START), MemoryMetrics()
        await story(PodClock(clock, metrics), clock)
        assert all(list(series) == [()] and series[()].count == 1 for series in metrics.samples.values())
        return {name.removeprefix(PREFIX): series[()].sum for name, series in metrics.samples.items()}

    return run_virtual(go())


def test_a_pod_from_its_creation_to_its_readiness() -> None:
    async def story(pods: PodClock, clock: VirtualClock) -> None:
        await clock.sleep(1)
        pods.on_pod(Change(None, pod()))
        await clock.sleep(2)
        pods.decided(["u"], ["u"])  # no place yet
        await clock.sleep(7)
        pods.decided(["u"], [])
        (times,) = pods.times().values()
        assert (times.seen, times.decided, times.schedulable) == (
            START + timedelta(seconds=1),
            START + timedelta(seconds=3),
            START + timedelta(seconds=10),
        )
        pods.on_pod(Change(pod(), pod(node="n", PodScheduled=90)))
        pods.on_pod(Change(None, pod(node="n", PodScheduled=90)))
        pods.on_pod(Change(None, pod("Running", "n", PodScheduled=90, Ready=120)))
        pods.on_pod(Change(None, pod("Running", "n", PodScheduled=90, Ready=500)))
        assert pods.times() == {}

    assert told(story) == {
        "scheduling_decision_duration_seconds": 2,
        "bound_duration_seconds": 90,
        "provisioning_bound_duration_seconds": 80,
        "startup_duration_seconds": 120,
        "provisioning_startup_duration_seconds": 110,
    }


def test_a_pod_that_no_decision_was_needed_for() -> None:
    async def story(pods: PodClock, clock: VirtualClock) -> None:
        pods.on_pod(Change(None, pod(node="")))
        pods.on_pod(Change(None, pod("Running", "n", PodScheduled=1, Ready=4)))

    assert told(story) == {"bound_duration_seconds": 1, "startup_duration_seconds": 4}


def test_what_was_bound_before_the_controller_began_tells_its_start_alone() -> None:
    async def story(pods: PodClock, clock: VirtualClock) -> None:
        pods.on_pod(Change(None, pod(node="n", PodScheduled=1)))
        pods.on_pod(Change(None, pod("Running", "n", PodScheduled=1, Ready=4)))

    assert told(story) == {"startup_duration_seconds": 4}


def test_what_ran_before_the_controller_began_tells_nothing() -> None:
    async def story(pods: PodClock, clock: VirtualClock) -> None:
        pods.on_pod(Change(None, pod("Running", "n", PodScheduled=1, Ready=4)))
        pods.decided(["u", "another"], [])

    assert told(story) == {}


def test_a_pod_that_goes_or_ends_is_forgotten() -> None:
    async def story(pods: PodClock, clock: VirtualClock) -> None:
        pods.on_pod(Change(None, pod()))
        pods.on_pod(Change(pod(), None))
        assert pods.times() == {}
        pods.on_pod(Change(None, pod()))
        pods.on_pod(Change(pod(), pod("Failed")))
        assert pods.times() == {}
        pods.on_pod(Change(None, pod()))
        pods.on_pod(Change(pod(), pod(uid="v")))
        assert list(pods.times()) == ["v"]

    assert told(story) == {}
