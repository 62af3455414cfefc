"""An API server in memory, a cloud that is a dictionary, and a runtime over both, in virtual time."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from karpenter_linode.controllers.runtime import Runtime
from karpenter_linode.model import kinds
from karpenter_linode.ports import InstanceNotFoundError
from karpenter_linode.sim.clock import VirtualClock
from karpenter_linode.sim.kube_api import SimKubeApi
from karpenter_linode.sim.kube_faults import KubeFaults
from karpenter_linode.sim.loop import run_virtual
from karpenter_linode.sim.metrics import MemoryMetrics
from karpenter_linode.sim.seeded import SeededRandom
from karpenter_linode.sim.store import Store

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from karpenter_linode.controllers.settings import Settings

START = datetime(2026, 1, 1, tzinfo=UTC)


class Notebook:
    """Events and log lines as they came."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []
        self.lines: list[tuple[str, dict[str, Any]]] = []

    def publish(self, obj: Any, event_type: str, reason: str, message: str, **_: Any) -> None:
        self.events.append((obj.key, reason, message))

    def note(self, event: str, **fields: Any) -> None:
        self.lines.append((event, fields))

    debug = info = warning = error = note

    def messages(self) -> list[str]:
        return [line for line, _ in self.lines]


class ShelfCloud:
    """A cloud whose instances are entries of a dictionary."""

    name = "shelf"

    def __init__(self) -> None:
        self.instances: dict[str, Any] = {}
        self.deleted: list[str] = []

    async def list(self) -> tuple[Any, ...]:
        return tuple(self.instances.values())

    async def delete(self, provider_id: str) -> None:
        if self.instances.pop(provider_id, None) is None:
            raise InstanceNotFoundError(provider_id)
        self.deleted.append(provider_id)

    async def get(self, provider_id: str) -> Any:
        if provider_id not in self.instances:
            raise InstanceNotFoundError(provider_id)
        return self.instances[provider_id]

    async def instance_types(self, node_pool: Any) -> tuple[Any, ...]:
        return ()


class Lab:
    """The world of one test."""

    def __init__(self, settings: Settings | None) -> None:
        self.clock = VirtualClock(asyncio.get_running_loop(), START)
        self.random = SeededRandom(1)
        self.store = Store(self.clock, self.random)
        self.faults = KubeFaults(self.random.child("faults"), latency_seconds=(0.001, 0.002))
        self.kube = SimKubeApi(self.store, self.clock, faults=self.faults)
        self.cloud = ShelfCloud()
        self.notebook, self.metrics = Notebook(), MemoryMetrics()
        self.runtime = Runtime(
            self.kube, self.cloud, self.clock, self.random, self.notebook, self.metrics, self.notebook, settings
        )
        for name in ("default",):
            self.store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def seconds(self) -> float:
        return (self.clock.now() - START).total_seconds()

    def create(self, plain: dict[str, Any]) -> Any:
        kind = kinds.find_kind(plain["apiVersion"], plain["kind"])
        return self.store.create(plain).decode(kind)


@pytest.fixture
def lab() -> Callable[..., Any]:
    """``lab(story)`` runs ``async def story(lab)`` in virtual time."""

    def run(story: Callable[[Lab], Awaitable[Any]], settings: Settings | None = None) -> Any:
        async def live() -> Any:
            return await story(Lab(settings))

        return run_virtual(live())

    return run


@pytest.fixture
def node() -> Callable[..., dict[str, Any]]:
    """A plain Node."""

    def make(name: str = "n", **metadata: Any) -> dict[str, Any]:
        return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **metadata}}

    return make
