"""A cluster in which the Go provider built nodes, and this controller takes its place (docs/upgrade.md)."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter_linode.model.core import Node, Pod
from karpenter_linode.model.karpenter import NodeClaim
from karpenter_linode.model.resource import ResourceSlice
from karpenter_linode.sim.resource_types import type_of

PLAN = "g2-gpu-rtx4000a1-s"
GO_TAGS = (
    "kubernetes.io/cluster/embedded=owned",
    "karpenter.sh/nodepool=gpu",
    "lke-cluster-name=embedded",
    "karpenter.k8s.linode/linodenodeclass=default",
    "karpenter.k8s.linode/lke-managed=true",
)
LABELS = {
    "karpenter.sh/nodepool": "gpu",
    "karpenter.k8s.linode/linodenodeclass": "default",
    "node.kubernetes.io/instance-type": PLAN,
    "topology.kubernetes.io/region": "us-ord",
    "karpenter.sh/capacity-type": "on-demand",
}
TAINT = {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}


class GoProvider:
    """What it leaves behind: pools without a template hash, tagged instances, NodeClaims, registered Nodes."""

    def __init__(self, world: Any) -> None:
        self.world, self.linode = world, world.cluster.linode
        self.cluster = next(iter(self.linode.clusters.values()))

    async def build(self, *claims: str, spare: int = 0) -> None:
        """One pool with a node for every NodeClaim, and members that were bought and never claimed."""
        body = {"count": len(claims) + spare, "tags": list(GO_TAGS), "labels": {}, "taints": [TAINT]}
        self.pool = self.linode.pools.create(self.cluster, self.linode.types[PLAN], body)
        slices = type_of(ResourceSlice)
        assert await self.world.run_until(lambda: len(self.world.cluster.store.list(slices)) == body["count"], 3600)
        for name, member in zip(claims, self.pool.members, strict=False):
            machine = self.linode.machines.get(member.machine)
            machine.tags = (*GO_TAGS, f"karpenter.sh/nodeclaim={name}")
            self._node_claim(name, machine)

    def _node_claim(self, name: str, machine: Any) -> None:
        store = self.world.cluster.store
        claim = {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {
                "name": name,
                "labels": LABELS,
                "finalizers": ["karpenter.sh/termination"],
                "annotations": {
                    "karpenter.sh/nodepool-hash": "1",
                    "karpenter.sh/nodepool-hash-version": "v3",
                    "karpenter.k8s.linode/linodenodeclass-hash": "1",
                    "karpenter.k8s.linode/linodenodeclass-hash-version": "v1alpha1",
                    "karpenter.k8s.linode/tagged": "true",
                },
            },
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.linode", "kind": "LinodeNodeClass", "name": "default"},
                "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [PLAN]}],
                "resources": {"requests": {"cpu": "1", "pods": "1"}},
                "taints": [TAINT],
                "expireAfter": "720h",
            },
        }
        store.create(claim)
        node = store.get(type_of(Node), machine.label)
        amounts = {key: node.plain["status"][key] for key in ("capacity", "allocatable")}
        met = ("Launched", "Registered", "Initialized", "Ready")
        conditions = [{"type": kind, "status": "True", "reason": kind, "message": ""} for kind in met]
        status = {"nodeName": machine.label, "providerID": f"linode://{machine.id}", "conditions": conditions}
        store.patch(type_of(NodeClaim), name, {"status": {**status, **amounts}}, subresource="status")
        done = {"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}
        meta = {"labels": {**LABELS, **done}, "finalizers": ["karpenter.sh/termination"]}
        store.patch(type_of(Node), machine.label, {"metadata": meta})


@pytest.fixture
def taken_over(described: Any, play: Any) -> Any:
    """Run a story in which the Go provider worked first; the cluster holds no other NodeClaims."""

    def run(story: Any, *manifests: dict[str, Any]) -> Any:
        async def whole(world: Any) -> Any:
            await world.kill_controller()
            return await story(world, GoProvider(world))

        return play([*described, *manifests], whole)

    return run


async def running(world: Any, pod: dict[str, Any]) -> None:
    """Apply a pod and let time pass until all pods run."""
    world.cluster.apply([pod])
    phases = lambda: {item.status.phase for item in world.cluster.store.all(Pod)}  # noqa: E731 - said once
    assert await world.run_until(lambda: phases() == {"Running"}, 3600)


def linodes(world: Any) -> int:
    """How many Linodes were ever bought."""
    return len(world.history.bill(world.clock.now()))


def test_a_node_that_the_go_provider_built_is_used_kept_and_taken_down_when_empty(taken_over: Any, job: Any) -> None:
    async def story(world: Any, before: GoProvider) -> None:
        await before.build("gpu-go111")
        await world.start_controller()
        world.cluster.apply([job()])
        assert await world.run_until_quiet(7200)
        (pod,) = world.cluster.store.all(Pod) or [None]
        assert pod is None or pod.spec.node_name
        assert linodes(world) == 1
        assert world.outcome(quiet=True).left == ()
        assert list(world.cluster.store.all(NodeClaim)) == []
        assert world.cluster.linode.pools.of(before.cluster.id) == ()

    taken_over(story)


def test_its_busy_node_is_neither_replaced_nor_drained(taken_over: Any, job: Any) -> None:
    async def story(world: Any, before: GoProvider) -> None:
        await before.build("gpu-go111")
        await running(world, job(runtime=None))
        await world.start_controller()
        await world.clock.sleep(7200)
        (claim,) = world.cluster.store.all(NodeClaim)
        assert (claim.name, claim.metadata.deletion_timestamp) == ("gpu-go111", None)
        assert linodes(world) == 1
        (pod,) = world.cluster.store.all(Pod)
        assert pod.status.phase == "Running"

    taken_over(story)


def test_new_nodes_come_in_a_pool_of_their_own(taken_over: Any, job: Any) -> None:
    async def story(world: Any, before: GoProvider) -> None:
        await before.build("gpu-go111")
        await running(world, job("first", runtime=None))
        await world.start_controller()
        await running(world, job("second", runtime=None))
        old, new = world.cluster.linode.pools.of(before.cluster.id)
        assert (old.id, len(old.members), len(new.members)) == (before.pool.id, 1, 1)
        assert linodes(world) == 2

    taken_over(story)


def test_what_it_bought_and_never_claimed_goes_after_ten_minutes(taken_over: Any, job: Any) -> None:
    async def story(world: Any, before: GoProvider) -> None:
        await before.build("gpu-go111", spare=2)
        await running(world, job(runtime=None))
        await world.start_controller()
        assert len(before.pool.members) == 3
        assert await world.run_until(lambda: len(before.pool.members) == 1, 1800)
        (member,) = before.pool.members
        (claim,) = world.cluster.store.all(NodeClaim)
        assert claim.status.provider_id == f"linode://{member.machine}"
        assert linodes(world) == 3

    taken_over(story)
