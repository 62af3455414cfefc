"""What kubelets do with pods."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from karpenter_linode.model.core import Pod
from karpenter_linode.model.meta import is_true
from karpenter_linode.sim.cluster import SimSettings
from karpenter_linode.sim.kubelet import RUNTIME_ANNOTATION
from karpenter_linode.sim.resource_types import type_of

Run = Callable[..., Any]


def runs_for(text: str) -> dict[str, Any]:
    return {"annotations": {RUNTIME_ANNOTATION: text}}


def test_a_pod_is_pending_while_images_are_pulled_and_then_runs(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        world.add_pod()
        await world.clock.sleep(4)
        pod = world.pod()
        assert (pod.spec.node_name, pod.status.phase) == ("node-a", "Pending")
        assert pod.status.start_time is not None
        assert not is_true(pod.status.conditions, "Ready")
        await world.clock.sleep(20)
        assert world.pod().status.phase == "Running"
        assert is_true(world.pod().status.conditions, "Ready")

    run(play)


def test_without_a_runtime_a_pod_runs_for_ever(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        world.add_pod()
        await world.clock.sleep(100_000)
        assert world.pod().status.phase == "Running"
        assert world.pending == 0

    run(play)


def test_a_pod_that_may_end_succeeds_after_its_runtime(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        world.add_pod(metadata=runs_for("10m"))
        await world.clock.sleep(590)
        assert world.pod().status.phase == "Running"
        await world.clock.sleep(60)
        assert world.pod().status.phase == "Succeeded"

    run(play)


def test_a_pod_that_would_restart_for_ever_is_deleted_by_its_user(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        world.add_pod(metadata=runs_for("10m"), restartPolicy="Always")
        await world.clock.sleep(700)
        assert world.pod() is None
        assert any(entry.component == "user" and "work is done" in entry.message for entry in world.journal.entries)

    run(play)


def test_a_default_runtime_is_for_pods_that_do_not_say(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        world.add_pod("silent")
        world.add_pod("long", metadata=runs_for("1h"))
        await world.clock.sleep(400)
        assert world.pod("silent").status.phase == "Succeeded"
        assert world.pod("long").status.phase == "Running"

    run(play, settings=SimSettings(default_runtime=timedelta(minutes=5)))


def test_an_unreadable_runtime_is_reported_and_ignored(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        world.add_pod(metadata=runs_for("soon"))
        await world.clock.sleep(60)
        assert world.pod().status.phase == "Running"
        assert "'soon' is not a duration" in world.messages("InvalidRuntime")[0]

    run(play)


def test_deletion_waits_for_containers_within_the_grace(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        world.add_pod(terminationGracePeriodSeconds=1)
        await world.clock.sleep(60)
        world.delete("v1", "Pod", "pod")
        assert world.pod() is not None
        await world.clock.sleep(1.1)
        assert world.pod() is None

    run(play)


def test_a_dead_kubelet_confirms_no_deletion(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        world.add_pod()
        await world.clock.sleep(60)
        world.nodes.stopped("node-a")
        world.delete("v1", "Pod", "pod")
        await world.clock.sleep(600)
        assert world.pod().metadata.deletion_timestamp is not None

    run(play)


def test_a_dead_kubelet_starts_and_finishes_nothing_and_one_that_is_back_does(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        world.add_pod(metadata=runs_for("20s"))
        await world.clock.sleep(1)
        world.nodes.stopped("node-a")
        await world.clock.sleep(45)
        assert world.pod().status.phase == "Pending"
        world.boot()
        await world.clock.sleep(60)
        assert world.pod().status.phase == "Succeeded"

    run(play)


def test_a_pod_with_a_claim_starts_once_the_claim_is_its_own(run: Run) -> None:
    async def play(world: Any) -> None:
        world.add_gpu_template()
        await world.ready(gpus=1, plan="g2-gpu-rtx4000a1-s")
        world.add_gpu_pod()
        await world.clock.sleep(10)
        world.store.bind("pod", "default", "node-a")
        await world.clock.sleep(30)
        assert world.pod().status.phase == "Pending"

    run(play)


def test_a_recreated_pod_is_another_pod(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        world.add_pod(metadata=runs_for("10m"))
        await world.clock.sleep(60)
        world.store.delete(type_of(Pod), "pod", "default", grace_period_seconds=0)
        world.add_pod()
        await world.clock.sleep(700)
        assert world.pod().status.phase == "Running"

    run(play)
