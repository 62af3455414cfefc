"""Deployments, ReplicaSets and StatefulSets with templates: pods are made, replaced, rolled and taken away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from karpenter_linode.model.core import Pod
from karpenter_linode.ports import InvalidError
from karpenter_linode.sim.deployments import DEPLOYMENT, REPLICA_SET
from karpenter_linode.sim.resource_types import served_type
from karpenter_linode.sim.validation_workloads import MAX_REPLICAS

if TYPE_CHECKING:
    from collections.abc import Callable


def workload(kind: str = "Deployment", replicas: int = 4, image: str = "one", **more: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "app", "image": image}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template, **more}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": spec}


def pods(world: Any) -> list[Pod]:
    return [pod for pod in world.store.all(Pod) if pod.metadata.deletion_timestamp is None]


def status(world: Any, kind: str = "Deployment") -> dict[str, Any]:
    found: dict[str, Any] = world.store.get(served_type("apps/v1", kind), "web", "default").plain["status"]
    return found


def test_a_deployment_makes_its_pods_and_they_run_for_ever(run: Callable[..., Any]) -> None:
    async def story(world: Any) -> None:
        await world.ready()
        world.apply([workload()])
        await world.clock.sleep(60)
        assert [pod.status.phase for pod in pods(world)] == ["Running"] * 4
        (replica_set,) = world.store.list(REPLICA_SET)
        assert replica_set.name.startswith("web-")
        assert pods(world)[0].metadata.owner_references[0].kind == "ReplicaSet"
        told = status(world)
        assert (told["readyReplicas"], told["updatedReplicas"], told["availableReplicas"]) == (4, 4, 4)
        assert told["conditions"][0]["status"] == "True"
        await world.clock.sleep(100_000)
        assert len(pods(world)) == 4

    run(story)


def test_a_pod_that_goes_is_replaced_once_and_scaling_follows(run: Callable[..., Any]) -> None:
    async def story(world: Any) -> None:
        await world.ready()
        world.apply([workload()])
        await world.clock.sleep(60)
        world.delete("v1", "Pod", pods(world)[0].name)
        await world.clock.sleep(120)
        assert len(pods(world)) == 4
        for replicas in (7, 2, 0):
            world.store.patch(DEPLOYMENT, "web", {"spec": {"replicas": replicas}}, namespace="default")
            await world.clock.sleep(120)
            assert len(pods(world)) == replicas

    run(story)


def test_a_new_template_rolls_out_and_enough_pods_are_ready_all_the_while(run: Callable[..., Any]) -> None:
    async def story(world: Any) -> None:
        await world.ready()
        world.apply([workload()])
        await world.clock.sleep(60)
        seen: list[tuple[int, int]] = []

        def look(_: Any) -> None:
            alive = pods(world)
            ready = sum(any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions) for pod in alive)
            seen.append((len(alive), ready))

        world.store.listen(Pod, look)
        world.apply([workload(image="two")])
        await world.clock.sleep(300)
        assert {pod.spec.containers[0].image for pod in pods(world)} == {"two"}
        assert max(alive for alive, _ in seen) <= 5, "a quarter more, and no more"
        assert min(ready for _, ready in seen) >= 3, "a quarter fewer, and no fewer"
        assert [item.plain["spec"]["replicas"] for item in world.store.list(REPLICA_SET)].count(0) == 1

    run(story)


def test_recreate_ends_the_old_pods_first(run: Callable[..., Any]) -> None:
    async def story(world: Any) -> None:
        await world.ready()
        world.apply([workload(strategy={"type": "Recreate"})])
        await world.clock.sleep(60)
        images: list[set[str]] = []
        world.store.listen(Pod, lambda _: images.append({pod.spec.containers[0].image for pod in pods(world)}))
        world.apply([workload(image="two", strategy={"type": "Recreate"})])
        await world.clock.sleep(300)
        assert {"one", "two"} not in images
        assert images[-1] == {"two"}

    run(story)


def test_what_it_made_goes_with_a_deployment(run: Callable[..., Any]) -> None:
    async def story(world: Any) -> None:
        await world.ready()
        world.apply([workload()])
        await world.clock.sleep(60)
        world.delete("apps/v1", "Deployment", "web")
        await world.clock.sleep(300)
        assert world.store.list(REPLICA_SET) == ()
        assert list(world.store.all(Pod)) == []

    run(story)


def test_a_stateful_set_keeps_its_numbers(run: Callable[..., Any]) -> None:
    async def story(world: Any) -> None:
        await world.ready()
        world.apply([workload("StatefulSet", 3)])
        await world.clock.sleep(60)
        assert [pod.name for pod in pods(world)] == ["web-0", "web-1", "web-2"]
        world.delete("v1", "Pod", "web-1")
        await world.clock.sleep(120)
        assert [pod.name for pod in pods(world)] == ["web-0", "web-1", "web-2"]
        world.store.patch(served_type("apps/v1", "StatefulSet"), "web", {"spec": {"replicas": 1}}, namespace="default")
        await world.clock.sleep(120)
        assert [pod.name for pod in pods(world)] == ["web-0"]
        assert status(world, "StatefulSet")["readyReplicas"] == 1

    run(story)


def test_a_set_without_a_template_makes_no_pods(run: Callable[..., Any]) -> None:
    async def story(world: Any) -> None:
        manifest = workload("ReplicaSet")
        del manifest["spec"]["template"]
        world.apply([manifest])
        await world.clock.sleep(60)
        assert pods(world) == []

    run(story)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"replicas": -1}, "must be greater than or equal to 0"),
        ({"replicas": MAX_REPLICAS + 1}, "at most 1000"),
        ({"selector": {"matchLabels": {"app": "other"}}}, "`selector` does not match template `labels`"),
        ({"selector": {}}, "spec.selector: Required value"),
        ({"template": {"metadata": {"labels": {"app": "web"}}, "spec": {}}}, "containers: Required value"),
    ],
)
def test_mistakes_in_workloads_are_refused(run: Callable[..., Any], change: dict[str, Any], message: str) -> None:
    async def story(world: Any) -> None:
        with pytest.raises(InvalidError, match=message):
            world.apply([workload(**change)])

    run(story)
