"""A small world for tests: everything of the embedded cluster but the cloud's API."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from karpenter_linode.model.core import Node, Pod
from karpenter_linode.model.linode import LinodeType, Region
from karpenter_linode.model.quantity import Quantity
from karpenter_linode.sim.clock import VirtualClock
from karpenter_linode.sim.cluster import Account, EmbeddedCluster, SimSettings
from karpenter_linode.sim.loop import VirtualLoop, run_virtual
from karpenter_linode.sim.nodes import Machine
from karpenter_linode.sim.seeded import SeededRandom
from karpenter_linode.sim.store import Store

START = datetime(2026, 1, 1, tzinfo=UTC)
ADA = LinodeType(id="g2-gpu-rtx4000a1-s", class_="gpu", vcpus=4, memory=16384, disk=524288, gpus=1)
ADA_PAIR = LinodeType(id="g2-gpu-rtx4000a2-s", class_="gpu", vcpus=8, memory=32768, disk=524288, gpus=2)
SMALL = LinodeType(id="g6-standard-4", class_="standard", vcpus=4, memory=8192, disk=163840)
ACCOUNT = Account((ADA, ADA_PAIR, SMALL), (Region("us-ord"),))


class World(EmbeddedCluster):
    """The embedded cluster with shorthands."""

    def machine(self, name: str = "node-a", *, gpus: int = 0, plan: str = "g6-standard-4", **more: Any) -> Machine:
        room = {"cpu": Quantity.of(4), "memory": Quantity.parse("8Gi"), "pods": Quantity.of(110)}
        more = {"capacity": room, "allocatable": room, "labels": {}, "taints": ()} | more
        return Machine(
            node_name=name,
            provider_id=f"linode://{name}",
            instance_type=plan,
            region="us-ord",
            pool_id="1",
            host_uuid="h",
            gpus=gpus,
            **more,
        )

    def boot(self, name: str = "node-a", **more: Any) -> None:
        self.nodes.booted(self.machine(name, **more))

    async def ready(self, name: str = "node-a", **more: Any) -> Node:
        self.boot(name, **more)
        await self.clock.sleep(30)
        return self.node(name)

    def node(self, name: str = "node-a") -> Node:
        node = self.store.find(Node, name)
        assert node is not None
        return node

    def add_pod(self, name: str = "pod", *, metadata: dict[str, Any] | None = None, **spec: Any) -> Pod:
        spec = {"restartPolicy": "Never", "containers": [{"name": "app", "image": "pause"}]} | spec
        manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **(metadata or {})}, "spec": spec}
        return self.apply([manifest])[0].decode(Pod)

    def pod(self, name: str = "pod", namespace: str = "default") -> Pod | None:
        return self.store.find(Pod, name, namespace)

    def add(self, api_version: str, kind: str, name: str, **parts: Any) -> None:
        self.apply([{"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **parts}])

    def add_gpu_template(self, *, count: int = 1) -> None:
        self.add("resource.k8s.io/v1", "DeviceClass", "gpu.nvidia.com", spec={})
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": count}}
        self.add(
            "resource.k8s.io/v1",
            "ResourceClaimTemplate",
            "one-gpu",
            spec={"spec": {"devices": {"requests": [request]}}},
        )

    def add_gpu_pod(self, name: str = "pod", **more: Any) -> Pod:
        container = {"name": "app", "image": "cuda", "resources": {"claims": [{"name": "gpu"}]}}
        claims = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
        return self.add_pod(name, containers=[container], resourceClaims=claims, **more)

    def messages(self, reason: str) -> list[str]:
        return [entry.message for entry in self.journal.entries if entry.fields.get("reason") == reason]


Play = Callable[[World], Awaitable[None]]


def _run(play: Play, *, seed: int = 1, settings: SimSettings | None = None) -> World:
    async def main() -> World:
        clock = VirtualClock(asyncio.get_running_loop(), START)
        world = World(clock, ACCOUNT, seed=seed, settings=settings or SimSettings())
        world.start()
        await play(world)
        await world.stop()
        return world

    return run_virtual(main())


@pytest.fixture
def run() -> Callable[..., World]:
    """Play a coroutine function in a fresh world under virtual time; returns the world as it was left."""
    return _run


@pytest.fixture
def store() -> Store:
    """An API server in a world whose time stands still."""
    loop = VirtualLoop()
    store = Store(VirtualClock(loop, START), SeededRandom(1))
    loop.close()
    store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
    return store
