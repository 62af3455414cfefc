"""DaemonSets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from karpenter_linode.model.core import DaemonSet, Node, Pod, Taint
from karpenter_linode.sim.resource_types import type_of

Run = Callable[..., Any]


def daemon(world: Any, **spec: Any) -> None:
    template = {
        "metadata": {"labels": {"app": "agent"}},
        "spec": {"containers": [{"name": "agent", "image": "x"}], **spec},
    }
    world.add(
        "apps/v1", "DaemonSet", "agent", spec={"selector": {"matchLabels": {"app": "agent"}}, "template": template}
    )


def places(world: Any) -> list[str]:
    return sorted(pod.spec.node_name for pod in world.store.all(Pod))


def test_every_matching_node_runs_one_pod(run: Run) -> None:
    async def play(world: Any) -> None:
        daemon(world, nodeSelector={"kubernetes.io/os": "linux"})
        world.boot("node-a")
        world.boot("node-b")
        await world.clock.sleep(60)
        assert places(world) == ["node-a", "node-b"]
        await world.ready("node-c")
        await world.clock.sleep(30)
        assert places(world) == ["node-a", "node-b", "node-c"]
        (daemon_set,) = (s.plain for s in world.store.list(type_of(DaemonSet)))
        assert daemon_set["status"]["desiredNumberScheduled"] == 3

    run(play)


def test_daemons_are_owned_and_tolerate_the_troubles_of_nodes(run: Run) -> None:
    async def play(world: Any) -> None:
        daemon(world)
        await world.ready()
        await world.clock.sleep(30)
        (pod,) = world.store.all(Pod)
        (owner,) = pod.metadata.owner_references
        assert (owner.api_version, owner.kind, owner.controller) == ("apps/v1", "DaemonSet", True)
        assert pod.metadata.labels == {"app": "agent"}
        world.nodes.stopped("node-a")
        await world.clock.sleep(1000)
        (pod,) = world.store.all(Pod)
        assert pod.metadata.deletion_timestamp is None

    run(play)


def test_a_tainted_node_is_passed_over_unless_tolerated(run: Run) -> None:
    async def play(world: Any) -> None:
        daemon(world)
        await world.ready(taints=(Taint("nvidia.com/gpu", "true", "NoSchedule"),))
        await world.clock.sleep(60)
        assert places(world) == []

    run(play)


def test_a_taint_that_comes_later_evicts_only_if_it_says_so(run: Run) -> None:
    async def play(world: Any) -> None:
        daemon(world)
        await world.ready()
        await world.clock.sleep(30)
        for effect, left in (("NoSchedule", ["node-a"]), ("NoExecute", [])):
            taints = [{"key": "karpenter.sh/disrupted", "effect": effect}]
            world.store.patch(type_of(Node), "node-a", {"spec": {"taints": taints}})
            await world.clock.sleep(60)
            assert places(world) == left

    run(play)


def test_a_daemons_pod_is_replaced_and_goes_with_its_set(run: Run) -> None:
    async def play(world: Any) -> None:
        daemon(world)
        await world.ready()
        await world.clock.sleep(30)
        (pod,) = world.store.all(Pod)
        world.delete("v1", "Pod", pod.name)
        await world.clock.sleep(60)
        (successor,) = world.store.all(Pod)
        assert successor.uid != pod.uid
        world.delete("apps/v1", "DaemonSet", "agent")
        await world.clock.sleep(60)
        assert places(world) == []

    run(play)


def owned(kind: str, api_version: str = "apps/v1") -> dict[str, Any]:
    owner = {"apiVersion": api_version, "kind": kind, "name": "web", "uid": "w", "controller": True}
    return {"ownerReferences": [owner], "labels": {"app": "web"}}


def names(world: Any) -> list[str]:
    return sorted(pod.name for pod in world.store.all(Pod))


def test_a_replica_that_goes_is_replaced_by_one_like_it(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        world.add_pod("web-a", metadata=owned("ReplicaSet"), nodeSelector={"kubernetes.io/os": "linux"})
        await world.clock.sleep(30)
        await world.kube_api().evict("web-a", "default")
        await world.clock.sleep(60)
        (name,) = names(world)
        successor = world.pod(name)
        assert name.startswith("web-")
        assert name != "web-a"
        assert successor.metadata.labels == {"app": "web"}
        assert successor.spec.node_selector == {"kubernetes.io/os": "linux"}
        assert successor.status.phase == "Running"

    run(play)


def test_a_stateful_replica_keeps_its_name(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        before = world.add_pod("web-0", metadata=owned("StatefulSet"))
        await world.clock.sleep(30)
        world.delete("v1", "Pod", "web-0")
        await world.clock.sleep(60)
        assert world.pod("web-0").uid != before.uid

    run(play)


def test_a_replica_whose_work_is_done_stays_away(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        metadata = {**owned("ReplicaSet"), "annotations": {"simulate.karpenter-linode/runtime": "1m"}}
        world.add_pod("web-a", metadata=metadata, restartPolicy="Always")
        await world.clock.sleep(300)
        assert names(world) == []

    run(play)


def test_a_job_replaces_lost_pods_and_not_those_that_succeeded(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        metadata = {**owned("Job", "batch/v1"), "annotations": {"simulate.karpenter-linode/runtime": "5m"}}
        world.add_pod("web-a", metadata=metadata)
        await world.clock.sleep(60)
        world.delete("v1", "Pod", "web-a")
        await world.clock.sleep(60)
        (name,) = names(world)
        await world.clock.sleep(400)
        assert world.pod(name).status.phase == "Succeeded"
        world.delete("v1", "Pod", name)
        await world.clock.sleep(60)
        assert names(world) == []

    run(play)


def test_bare_pods_do_not_come_back(run: Run) -> None:
    async def play(world: Any) -> None:
        await world.ready()
        world.add_pod()
        await world.clock.sleep(60)
        world.delete("v1", "Pod", "pod")
        await world.clock.sleep(60)
        assert names(world) == []

    run(play)
