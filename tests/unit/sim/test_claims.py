"""The resource claim controller: makes, releases, deletes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from karpenter_linode.model import codec
from karpenter_linode.model.core import Pod
from karpenter_linode.model.labels import CLAIM_FINALIZER, POD_CLAIM_NAME
from karpenter_linode.model.resource import ResourceClaim
from karpenter_linode.sim.kubelet import RUNTIME_ANNOTATION
from karpenter_linode.sim.resource_types import type_of

Run = Callable[..., Any]


def claims(world: Any) -> list[ResourceClaim]:
    return list(world.store.all(ResourceClaim))


async def gpu_node(world: Any, *, gpus: int = 1) -> None:
    world.add_gpu_template()
    await world.ready(gpus=gpus, plan=f"g2-gpu-rtx4000a{gpus}-s")
    await world.clock.sleep(200)


def test_a_claim_is_made_from_its_template(run: Run) -> None:
    async def play(world: Any) -> None:
        world.add_gpu_template(count=2)
        pod = world.add_gpu_pod()
        await world.clock.sleep(1)
        (claim,) = claims(world)
        assert claim.name.startswith("pod-gpu-")
        assert len(claim.name) == len("pod-gpu-") + 5
        assert claim.metadata.annotations == {POD_CLAIM_NAME: "gpu"}
        (owner,) = claim.metadata.owner_references
        assert (owner.kind, owner.uid, owner.controller) == ("Pod", pod.uid, True)
        assert claim.spec.devices.requests[0].exactly.count == 2
        assert [(s.name, s.resource_claim_name) for s in world.pod().status.resource_claim_statuses] == [
            ("gpu", claim.name)
        ]

    run(play)


def test_a_missing_template_is_reported_and_waited_for(run: Run) -> None:
    async def play(world: Any) -> None:
        world.add_gpu_pod()
        await world.clock.sleep(120)
        assert claims(world) == []
        assert "not found" in world.messages("FailedResourceClaimCreation")[0]
        world.add_gpu_template()
        await world.clock.sleep(200)
        assert len(claims(world)) == 1

    run(play)


def test_a_claim_is_made_once_even_if_its_name_was_not_recorded(run: Run) -> None:
    async def play(world: Any) -> None:
        world.add_gpu_template()
        pod = world.add_gpu_pod()
        await world.clock.sleep(1)
        (claim,) = claims(world)
        world.store.patch(
            _pods(), "pod", {"status": {"resourceClaimStatuses": None}}, namespace="default", subresource="status"
        )
        await world.clock.sleep(5)
        assert claims(world) == [claim]
        assert world.pod().status.resource_claim_statuses[0].resource_claim_name == claim.name
        assert world.pod().uid == pod.uid

    run(play)


def _pods() -> Any:
    return type_of(Pod)


def test_an_allocated_claim_is_protected_and_reserved(run: Run) -> None:
    async def play(world: Any) -> None:
        await gpu_node(world)
        pod = world.add_gpu_pod()
        await world.clock.sleep(60)
        (claim,) = claims(world)
        assert claim.metadata.finalizers == (CLAIM_FINALIZER,)
        assert [user.uid for user in claim.status.reserved_for] == [pod.uid]
        (result,) = claim.status.allocation.devices.results
        assert (result.request, result.driver, result.pool, result.device) == (
            "gpu",
            "gpu.nvidia.com",
            "node-a",
            "gpu-0",
        )
        (term,) = claim.status.allocation.node_selector.node_selector_terms
        assert [(e.key, e.values) for e in term.match_fields] == [("metadata.name", ("node-a",))]
        assert world.pod().status.phase == "Running"

    run(play)


def test_a_finished_pod_frees_its_claim_and_the_claim_ends(run: Run) -> None:
    async def play(world: Any) -> None:
        await gpu_node(world)
        world.add_gpu_pod(metadata={"annotations": {RUNTIME_ANNOTATION: "1m"}})
        await world.clock.sleep(30)
        assert len(claims(world)) == 1
        await world.clock.sleep(60)
        assert world.pod().status.phase == "Succeeded"
        assert claims(world) == []

    run(play)


def test_a_deleted_pod_takes_its_claim_along(run: Run) -> None:
    async def play(world: Any) -> None:
        await gpu_node(world)
        world.add_gpu_pod()
        await world.clock.sleep(60)
        world.delete("v1", "Pod", "pod")
        await world.clock.sleep(60)
        assert world.pod() is None
        assert claims(world) == []

    run(play)


def shared(world: Any, *names: str) -> None:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
    world.add("resource.k8s.io/v1", "ResourceClaim", "shared", spec={"devices": {"requests": [request]}})
    for name in names:
        world.add_pod(
            name,
            resourceClaims=[{"name": "gpu", "resourceClaimName": "shared"}],
            containers=[{"name": "app", "image": "cuda", "resources": {"claims": [{"name": "gpu"}]}}],
        )


def test_a_shared_claim_serves_several_pods_until_the_last_has_gone(run: Run) -> None:
    async def play(world: Any) -> None:
        await gpu_node(world)
        shared(world, "a", "b")
        await world.clock.sleep(60)
        assert [world.pod(name).spec.node_name for name in ("a", "b")] == ["node-a", "node-a"]
        (claim,) = claims(world)
        assert [user.name for user in claim.status.reserved_for] == ["a", "b"]
        world.delete("v1", "Pod", "a")
        await world.clock.sleep(60)
        (claim,) = claims(world)
        assert claim.status.allocation is not None
        world.delete("v1", "Pod", "b")
        await world.clock.sleep(60)
        (claim,) = claims(world)
        assert claim.status.allocation is None
        assert claim.metadata.finalizers == ()

    run(play)


def test_consumers_that_are_no_pods_are_left_alone(run: Run) -> None:
    async def play(world: Any) -> None:
        await gpu_node(world)
        shared(world, "a")
        await world.clock.sleep(60)
        (claim,) = claims(world)
        users = [*codec.to_plain(claim.status.reserved_for), {"resource": "podgroups", "name": "g", "uid": "g"}]
        world.store.patch(
            type_of(ResourceClaim),
            "shared",
            {"status": {"reservedFor": users}},
            namespace="default",
            subresource="status",
        )
        world.delete("v1", "Pod", "a")
        await world.clock.sleep(60)
        (claim,) = claims(world)
        assert [user.name for user in claim.status.reserved_for] == ["g"]
        assert claim.status.allocation is not None

    run(play)


def test_a_deleted_claim_stays_while_its_pod_runs(run: Run) -> None:
    async def play(world: Any) -> None:
        await gpu_node(world)
        shared(world, "a")
        await world.clock.sleep(60)
        world.delete("resource.k8s.io/v1", "ResourceClaim", "shared")
        await world.clock.sleep(60)
        assert len(claims(world)) == 1
        world.delete("v1", "Pod", "a")
        await world.clock.sleep(60)
        assert claims(world) == []

    run(play)
