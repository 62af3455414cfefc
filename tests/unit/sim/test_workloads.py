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
