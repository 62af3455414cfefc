"""Extended resources that a DeviceClass serves: the claim that the scheduler makes, and how it ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from karpenter_linode.dra.extended import EXTENDED_RESOURCE_CLAIM
from karpenter_linode.model import codec
from karpenter_linode.model.labels import CLAIM_FINALIZER
from karpenter_linode.model.meta import find_condition
from karpenter_linode.model.quantity import Quantity
from karpenter_linode.model.resource import ResourceClaim
from karpenter_linode.ports import ConflictError
from karpenter_linode.sim.kubelet import RUNTIME_ANNOTATION

Run = Callable[..., Any]
GPU = "nvidia.com/gpu"
IMPLICIT = "deviceclass.resource.kubernetes.io/gpu.nvidia.com"


def claims(world: Any) -> list[ResourceClaim]:
    return list(world.store.all(ResourceClaim))


def verdict(world: Any, name: str = "pod") -> str:
    condition = find_condition(world.pod(name).status.conditions, "PodScheduled")
    assert condition is not None
    return condition.message


def add_pod(world: Any, name: str = "pod", resource: str = GPU, runtime: str = "") -> None:
    amounts = {"requests": {resource: "1"}, "limits": {resource: "1"}}
    annotations = {RUNTIME_ANNOTATION: runtime} if runtime else {}
    container = {"name": "app", "image": "cuda", "resources": amounts}
    world.add_pod(name, metadata={"annotations": annotations}, containers=[container])


def serve(world: Any, resource: str = GPU) -> None:
    world.add("resource.k8s.io/v1", "DeviceClass", "gpu.nvidia.com", spec={"extendedResourceName": resource})


async def gpu_node(world: Any, *, gpus: int = 1) -> None:
    await world.ready(gpus=gpus, plan=f"g2-gpu-rtx4000a{gpus}-s")
    await world.clock.sleep(200)


@pytest.mark.parametrize("resource", [GPU, IMPLICIT])
def test_the_scheduler_makes_the_claim_when_it_binds_the_pod(run: Run, resource: str) -> None:
    async def play(world: Any) -> None:
        serve(world)
        await gpu_node(world)
        add_pod(world, resource=resource)
        await world.clock.sleep(60)
        pod = world.pod()
        assert (pod.spec.node_name, pod.status.phase) == ("node-a", "Running")
        (claim,) = claims(world)
        assert claim.name.startswith("pod-extended-resources-")
        assert len(claim.name) == len("pod-extended-resources-") + 5
        assert claim.metadata.annotations == {EXTENDED_RESOURCE_CLAIM: "true"}
        assert claim.metadata.finalizers == (CLAIM_FINALIZER,)
        (owner,) = claim.metadata.owner_references
        assert (owner.kind, owner.name, owner.uid, owner.controller) == ("Pod", "pod", pod.uid, True)
        assert [(user.resource, user.uid) for user in claim.status.reserved_for] == [("pods", pod.uid)]
        assert claim.status.allocation is not None
        (given,) = claim.status.allocation.devices.results
        assert (given.request, given.pool, given.device) == ("container-0-request-0", "node-a", "gpu-0")
        assert codec.to_plain(pod.status.extended_resource_claim_status) == {
            "resourceClaimName": claim.name,
            "requestMappings": [
                {"containerName": "app", "resourceName": resource, "requestName": "container-0-request-0"}
            ],
        }

    run(play)


def test_its_devices_are_in_use_for_every_other_pod(run: Run) -> None:
    async def play(world: Any) -> None:
        world.add_gpu_template()
        serve(world)
        await gpu_node(world, gpus=2)
        add_pod(world, "a", runtime="5m")
        add_pod(world, "b")
        await world.clock.sleep(60)
        world.add_gpu_pod("c")
        add_pod(world, "d")
        await world.clock.sleep(60)
        taken = [
            item.device
            for claim in claims(world)
            if claim.status.allocation
            for item in claim.status.allocation.devices.results
        ]
        assert sorted(taken) == ["gpu-0", "gpu-1"]
        assert all("1 cannot allocate all claims" in verdict(world, name) for name in ("c", "d"))
        await world.clock.sleep(300)
        assert len([name for name in ("c", "d") if world.pod(name).spec.node_name]) == 1

    run(play)


@pytest.mark.parametrize("deleted", [False, True])
def test_the_claim_ends_with_its_pod(run: Run, deleted: bool) -> None:
    async def play(world: Any) -> None:
        serve(world)
        await gpu_node(world)
        add_pod(world, runtime="" if deleted else "5m")
        await world.clock.sleep(60)
        assert len(claims(world)) == 1
        if deleted:
            world.delete("v1", "Pod", "pod")
        await world.clock.sleep(400)
        assert claims(world) == []

    run(play)


def test_a_node_that_counts_the_resource_needs_no_claim(run: Run) -> None:
    async def play(world: Any) -> None:
        serve(world)
        room = {"cpu": Quantity.of(4), "memory": Quantity.parse("8Gi"), "pods": Quantity.of(110), GPU: Quantity.of(1)}
        await world.ready(capacity=room, allocatable=room)
        add_pod(world, "a")
        add_pod(world, "b")
        await world.clock.sleep(60)
        assert claims(world) == []
        waiting = [name for name in ("a", "b") if not world.pod(name).spec.node_name]
        assert len(waiting) == 1
        assert f"1 Insufficient {GPU}" in verdict(world, waiting[0])

    run(play)


def test_a_class_that_comes_later_lets_the_pod_in(run: Run) -> None:
    async def play(world: Any) -> None:
        await gpu_node(world)
        add_pod(world)
        await world.clock.sleep(10)
        assert f"1 Insufficient {GPU}" in verdict(world)
        serve(world)
        await world.clock.sleep(30)
        assert world.pod().spec.node_name == "node-a"

    run(play)


def test_a_failed_binding_leaves_no_claim_and_is_tried_again(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(world: Any) -> None:
        serve(world)
        await gpu_node(world)
        bind, refusals = world.store.bind, [ConflictError("try again")]

        def flaky(*target: str) -> None:
            if refusals:
                raise refusals.pop()
            bind(*target)

        monkeypatch.setattr(world.store, "bind", flaky)
        add_pod(world)
        await world.clock.sleep(0.9)
        assert refusals == []
        assert claims(world) == []
        assert world.pod().status.extended_resource_claim_status is None
        await world.clock.sleep(60)
        assert world.pod().spec.node_name == "node-a"
        assert [claim.name for claim in claims(world)] == [
            world.pod().status.extended_resource_claim_status.resource_claim_name
        ]

    run(play)
