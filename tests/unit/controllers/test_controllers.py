"""Thin shells that whole-world tests reach only by accident: evictions, garbage collection, the limit at creation."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from karpenter_linode.controllers.batcher import Batcher
from karpenter_linode.controllers.garbage_collection import InstanceGarbageCollection, NodeClaimGarbageCollection
from karpenter_linode.controllers.node_termination import EvictionQueue
from karpenter_linode.controllers.provisioner import Provisioner
from karpenter_linode.lifecycle.effects import Evict
from karpenter_linode.model.core import Node, Pod, PodDisruptionBudget
from karpenter_linode.model.instance import CloudInstance
from karpenter_linode.model.karpenter import NodeClaim, NodePool
from karpenter_linode.ports import CloudError, KubeError
from karpenter_linode.scheduling.problem import PlannedNodeClaim
from karpenter_linode.sim.resource_types import type_of

REF = {"nodeClassRef": {"group": "karpenter.k8s.linode", "kind": "LinodeNodeClass", "name": "default"}}


def pod(name: str = "p", **metadata: Any) -> dict[str, Any]:
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "x"}]}
    meta = {"name": name, "namespace": "default", "labels": {"app": "a"}, **metadata}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def claim(name: str, **status: Any) -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": name, "labels": {"karpenter.sh/nodepool": "gpu"}},
        "spec": {**REF, "requirements": []},
        "status": status,
    }


async def mirrored(world: Any, *kinds: Any) -> None:
    for kind in world.runtime.state.kinds:
        world.runtime.state.relist(kind, world.store.all(kind) if kind in kinds else [], world.store.resource_version)
    world.runtime.announce_sync()


async def queued(world: Any, *pods: Any) -> tuple[EvictionQueue, asyncio.Task[None]]:
    queue = EvictionQueue(world.runtime)
    task = asyncio.create_task(queue.run())
    queue.accept(Evict(tuple((item.namespace, item.name, item.uid) for item in pods)))
    return queue, task


def test_a_pod_without_budget_is_evicted_and_told(lab: Any, node: Any) -> None:
    async def story(world: Any) -> None:
        world.create(node())
        made = world.create(pod())
        await mirrored(world, Pod, Node)
        _, task = await queued(world, made)
        await world.clock.sleep(1)
        assert world.store.find(Pod, "p", "default").metadata.deletion_timestamp is not None
        assert ("default/p", "Evicted", "Evicted pod: ") in world.notebook.events
        assert world.metrics.counter("karpenter_pods_eviction_requests_total", code="200") == 1
        task.cancel()

    lab(story)


def test_a_blocking_budget_is_told_on_the_node_and_tried_again(lab: Any, node: Any) -> None:
    async def story(world: Any) -> None:
        world.create(node())
        made = world.create(pod())
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "b", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "a"}}, "minAvailable": 1},
        }
        world.create(budget)
        await mirrored(world, Pod, Node)
        _, task = await queued(world, made)
        await world.clock.sleep(3)
        text = "Failed to drain node, evicting pod violates a PDB (Pod=default/p)"
        assert ("n", "FailedDraining", text) in world.notebook.events
        assert 3 <= world.metrics.counter("karpenter_pods_eviction_requests_total", code="429") <= 6
        allowed = {"status": {"disruptionsAllowed": 1}}
        budgets = type_of(PodDisruptionBudget)
        world.store.patch(budgets, "b", allowed, namespace="default", subresource="status")
        await world.clock.sleep(10)
        assert world.metrics.counter("karpenter_pods_eviction_requests_total", code="200") == 1
        task.cancel()

    lab(story)


def test_a_namesake_of_a_pod_that_is_gone_is_not_evicted(lab: Any, node: Any) -> None:
    async def story(world: Any) -> None:
        old = world.create(pod())
        world.store.delete(type_of(Pod), "p", "default", grace_period_seconds=0)
        world.create(pod())
        await mirrored(world, Pod)
        _, task = await queued(world, old)
        await world.clock.sleep(5)
        assert world.store.find(Pod, "p", "default").metadata.deletion_timestamp is None
        assert world.notebook.events == []
        task.cancel()

    lab(story)


def test_a_protected_pod_waits_until_its_deadline_nears(lab: Any, node: Any) -> None:
    async def story(world: Any) -> None:
        made = world.create(pod(annotations={"karpenter.sh/do-not-disrupt": "true"}))
        await mirrored(world, Pod)
        queue, task = await queued(world, made)
        await world.clock.sleep(30)
        assert world.store.find(Pod, "p", "default").metadata.deletion_timestamp is None
        deadline = world.clock.now() + timedelta(seconds=20)
        queue.accept(Evict((("default", "p", made.uid),), deadline))
        await world.clock.sleep(15)
        assert world.store.find(Pod, "p", "default").metadata.deletion_timestamp is not None
        assert any(reason == "Disrupted" for _, reason, _ in world.notebook.events)
        task.cancel()

    lab(story)


def test_the_earlier_deadline_is_kept(lab: Any, node: Any) -> None:
    async def story(world: Any) -> None:
        made = world.create(pod(annotations={"karpenter.sh/do-not-disrupt": "true"}))
        await mirrored(world, Pod)
        queue, task = await queued(world, made)
        for seconds in (40, 4000):
            deadline = world.clock.now() + timedelta(seconds=seconds)
            queue.accept(Evict((("default", "p", made.uid),), deadline))
        queue.accept(Evict((("default", "p", made.uid),)))
        await world.clock.sleep(25)
        assert world.store.find(Pod, "p", "default").metadata.deletion_timestamp is not None
        task.cancel()

    lab(story)


def test_an_orphan_goes_at_the_second_sighting_and_takes_its_node_along(lab: Any, node: Any) -> None:
    async def story(world: Any) -> None:
        world.create({**node(), "spec": {"providerID": "linode://9"}})
        built = world.clock.now() - timedelta(hours=1)
        world.cloud.instances["linode://9"] = CloudInstance("linode://9", "g6", "gone-1", "gpu", built)
        await mirrored(world, Node)
        task = asyncio.create_task(InstanceGarbageCollection(world.runtime).run())
        await world.clock.sleep(5)
        assert world.cloud.deleted == []
        await world.clock.sleep(10)
        assert world.cloud.deleted == ["linode://9"]
        assert list(world.store.all(Node)) == []
        task.cancel()

    lab(story)


def test_a_claim_that_the_mirror_does_not_know_yet_protects_its_instance(lab: Any) -> None:
    async def story(world: Any) -> None:
        await mirrored(world)
        world.create(claim("new"))
        world.store.patch(type_of(NodeClaim), "new", {"status": {"providerID": "linode://9"}}, subresource="status")
        built = world.clock.now() - timedelta(hours=1)
        world.cloud.instances["linode://9"] = CloudInstance("linode://9", "g6", "new", "gpu", built)
        task = asyncio.create_task(InstanceGarbageCollection(world.runtime).run())
        await world.clock.sleep(60)
        assert world.cloud.deleted == []
        task.cancel()

    lab(story)


def test_registered_claims_without_instance_are_collected(lab: Any) -> None:
    async def story(world: Any) -> None:
        for name in ("lost", "fine"):
            world.create(claim(name))
            status = {"providerID": f"linode://{name}", "conditions": [{"type": "Registered", "status": "True"}]}
            world.store.patch(type_of(NodeClaim), name, {"status": status}, subresource="status")
        world.cloud.instances["linode://fine"] = CloudInstance("linode://fine", "g6", "fine", "gpu", None)
        await mirrored(world, NodeClaim)
        task = asyncio.create_task(NodeClaimGarbageCollection(world.runtime).run())
        await world.clock.sleep(5)
        assert [item.name for item in world.store.all(NodeClaim)] == ["fine"]
        task.cancel()

    lab(story)


def test_the_limit_is_checked_once_more_before_a_claim_is_created(lab: Any) -> None:
    async def story(world: Any) -> None:
        pool = {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": "gpu"},
            "spec": {"limits": {"cpu": "4"}, "template": {"spec": {**REF, "requirements": []}}},
        }
        world.runtime.observe(world.create(pool))
        world.runtime.observe(world.create(claim("there")))
        status = {"providerID": "linode://1", "capacity": {"cpu": "8"}}
        patched = world.store.patch(type_of(NodeClaim), "there", {"status": status}, subresource="status")
        world.runtime.observe(patched.decode(NodeClaim))
        batcher = Batcher(world.clock, timedelta(seconds=1), timedelta(seconds=10))
        planned = PlannedNodeClaim("gpu-1", "gpu", patched.decode(NodeClaim), ("g6",), 1, ())
        message = r"resource usage exceeds limit \(limit=4, resource-name=cpu, usage=8\)"
        with pytest.raises(KubeError, match=message):
            await Provisioner(world.runtime, batcher)._create_all((planned,))

    lab(story)


def test_an_orphan_that_cannot_be_deleted_does_not_keep_others(lab: Any) -> None:
    async def story(world: Any) -> None:
        built = world.clock.now() - timedelta(hours=1)
        for ident in ("linode://8", "linode://9"):
            world.cloud.instances[ident] = CloudInstance(ident, "g6", "gone-1", "gpu", built)
        delete = world.cloud.delete

        async def refuse(provider_id: str) -> None:
            if provider_id == "linode://8":
                raise CloudError("busy")
            await delete(provider_id)

        world.cloud.delete = refuse
        await mirrored(world)
        task = asyncio.create_task(InstanceGarbageCollection(world.runtime).run())
        await world.clock.sleep(60)
        assert set(world.cloud.deleted) == {"linode://9"}
        task.cancel()

    lab(story)


def test_pending_pods_are_counted_by_zone_and_zones_without_any_fall_to_zero(lab: Any) -> None:
    async def story(world: Any) -> None:
        provisioner = Provisioner(world.runtime, Batcher(world.clock, timedelta(seconds=1), timedelta(seconds=10)))
        metric = "karpenter_scheduler_pending_pods_by_effective_zone_count"

        def seen() -> dict[str, float]:
            return {dict(key)["zone"]: value for key, value in world.metrics.gauges[metric].items()}

        waiting = pod()
        waiting["spec"] = {**waiting["spec"], "nodeName": "", "nodeSelector": {"topology.kubernetes.io/zone": "us-ord"}}
        world.create(waiting)
        unschedulable = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
        status = {"status": {"phase": "Pending", "conditions": unschedulable}}
        patched = world.store.patch(type_of(Pod), "p", status, namespace="default", subresource="status")
        world.runtime.observe(patched.decode(Pod))
        await provisioner.provide()
        assert seen() == {"us-ord": 1}
        world.runtime.state.forget(world.runtime.state.get(Pod, "default/p"))
        await provisioner.provide()
        assert seen() == {"us-ord": 0}

    lab(story)


def test_plans_are_asked_for_while_the_batch_is_still_open(lab: Any) -> None:
    async def story(world: Any) -> None:
        asked: list[float] = []

        async def instance_types(node_pool: Any) -> tuple[Any, ...]:
            asked.append(world.seconds())
            if len(asked) == 1:
                raise CloudError("the API failed")
            return ()

        world.cloud.instance_types = instance_types
        pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "gpu"}}
        world.create({**pool, "spec": {"template": {"spec": {**REF, "requirements": []}}}})
        await mirrored(world, NodePool)
        batcher = Batcher(world.clock, timedelta(seconds=1), timedelta(seconds=10))
        task = asyncio.create_task(Provisioner(world.runtime, batcher).run())
        await world.clock.sleep(5)
        assert asked == []
        batcher.trigger("pod")
        await world.clock.sleep(5)
        assert asked == pytest.approx([5.0, 6.0]), "ahead, where an error does no harm, and for the pass itself"
        task.cancel()

    lab(story)
