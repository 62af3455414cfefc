"""Calls of the cloud are counted; what can be bought is told for all NodePools together."""

from __future__ import annotations

import asyncio
import io
from datetime import UTC, datetime
from typing import Any

import pytest

from karpenter_linode.controllers.runtime import Runtime
from karpenter_linode.controllers.scope import SCOPE, Scope
from karpenter_linode.model import kinds, labels
from karpenter_linode.model.instance import CloudInstance, Launched
from karpenter_linode.model.instance_type import InstanceType, Offering
from karpenter_linode.model.requirement_spec import NodeSelectorRequirement
from karpenter_linode.operator.logging import JsonLogger
from karpenter_linode.operator.metered_cloud import MeteredCloud
from karpenter_linode.operator.metric_table import METRICS
from karpenter_linode.operator.offerings import Offerings
from karpenter_linode.ports import (
    CloudError,
    CreateError,
    InstanceNotFoundError,
    InsufficientCapacityError,
    NodeClassNotReadyError,
)
from karpenter_linode.sim.clock import VirtualClock
from karpenter_linode.sim.loop import run_virtual
from karpenter_linode.sim.metrics import MemoryMetrics

START = datetime(2026, 1, 1, tzinfo=UTC)


def instance_type(name: str, price: int, *, available: bool) -> InstanceType:
    def only(key: str, value: str) -> NodeSelectorRequirement:
        return NodeSelectorRequirement(key, "In", (value,))

    where = (only(labels.CAPACITY_TYPE, "on-demand"), only(labels.REGION, "us-ord"))
    sizes = (only(labels.LINODE_INSTANCE_CPU, "2"), only(labels.LINODE_INSTANCE_MEMORY, "4096"))
    return InstanceType(name, sizes, offerings=(Offering(where, price, available),))


class Cloud:
    """A cloud whose every call takes a second."""

    name = "linode"

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.error: CloudError | None = None
        self.plans: dict[str, tuple[InstanceType, ...]] = {}
        self.broken: set[str] = set()

    async def _call(self) -> None:
        await self.clock.sleep(1)
        if self.error is not None:
            raise self.error

    async def create(self, _: Any) -> Launched:
        await self._call()
        return Launched("linode://1")

    async def delete(self, _: str) -> None:
        await self._call()

    async def get(self, provider_id: str) -> CloudInstance:
        await self._call()
        return CloudInstance(provider_id)

    async def list(self) -> tuple[CloudInstance, ...]:
        await self._call()
        return (
            CloudInstance("linode://1", "g6-standard-2", "gpu-1", "gpu"),
            CloudInstance("linode://2", "g6-standard-2", "gpu-2", "gpu"),
            CloudInstance("linode://3", "g6-standard-2", "", "gpu"),
            CloudInstance("linode://4", "g6-standard-4", "cpu-1", "cpu", deleting=True),
        )

    async def instance_types(self, node_pool: Any) -> tuple[InstanceType, ...]:
        await self._call()
        if node_pool.name in self.broken:
            raise CloudError("no NodeClass")
        return self.plans[node_pool.name]


@pytest.mark.parametrize(
    ("error", "named", "outcome"),
    [
        (None, None, "created"),
        (InsufficientCapacityError("x"), "InsufficientCapacityError", "no_capacity"),
        (NodeClassNotReadyError("x"), "NodeClassNotReadyError", "failed"),
        (CreateError("Why", "x"), "", "retried"),
        (InstanceNotFoundError("x"), "NodeClaimNotFoundError", "failed"),
        (CloudError("x"), "", "failed"),
    ],
)
def test_calls_are_timed_and_failures_are_named(error: CloudError | None, named: str | None, outcome: str) -> None:
    async def go() -> None:
        clock, metrics = VirtualClock(asyncio.get_running_loop(), START), MemoryMetrics()
        cloud = Cloud(clock)
        cloud.error = error
        metered = MeteredCloud(cloud, "standard", clock, metrics)
        SCOPE.set(Scope("nodeclaim.lifecycle"))
        unused: Any = None
        calls = {
            "Create": metered.create(unused),
            "Delete": metered.delete("linode://1"),
            "Get": metered.get("linode://1"),
            "List": metered.list(),
        }
        outcomes = [(await asyncio.gather(call, return_exceptions=True))[0] for call in calls.values()]
        assert all((item is error) if error is not None else not isinstance(item, Exception) for item in outcomes)
        shared = {"controller": "nodeclaim.lifecycle", "provider": "linode"}
        for method in calls:
            key = tuple(sorted({**shared, "method": method}.items()))
            assert metrics.samples["karpenter_cloudprovider_duration_seconds"][key].sum == 1
            count = metrics.counter("karpenter_cloudprovider_errors_total", method=method, error=named or "", **shared)
            assert count == (0 if error is None else 1)
        created = metrics.samples["karpenter_linode_create_duration_seconds"]
        assert [dict(key) for key in created] == [{"tier": "standard", "outcome": outcome}]
        for name, series in {**metrics.counters, **metrics.samples}.items():
            for labels_of in series:
                assert sorted(METRICS[name].labels) == [label for label, _ in labels_of], name

    run_virtual(go())


def test_members_of_pools_are_told_as_they_were_last_listed() -> None:
    async def go() -> None:
        clock = VirtualClock(asyncio.get_running_loop(), START)
        metered = MeteredCloud(Cloud(clock), "standard", clock, MemoryMetrics())
        assert list(metered.readings()) == []
        await metered.list()
        assert [(labels_of, value) for _, labels_of, value in metered.readings()] == [
            (("cpu", "g6-standard-4", "leaving"), 1),
            (("gpu", "g6-standard-2", "claimed"), 2),
            (("gpu", "g6-standard-2", "unclaimed"), 1),
        ]

    run_virtual(go())


def pool(name: str) -> Any:
    ref = {"group": "karpenter.k8s.linode", "kind": "LinodeNodeClass", "name": "default"}
    return kinds.from_manifest(
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": name, "uid": name, "resourceVersion": "1"},
            "spec": {"template": {"spec": {"nodeClassRef": ref}}},
        }
    )


def test_what_any_node_pool_can_have_is_told_and_a_failing_one_keeps_what_it_had() -> None:
    async def go() -> None:
        clock, metrics, unused = VirtualClock(asyncio.get_running_loop(), START), MemoryMetrics(), None
        cloud, kube = Cloud(clock), unused
        cloud.plans = {
            "a": (instance_type("g6-standard-2", 36_000_000, available=False),),
            "b": (
                instance_type("g6-standard-2", 36_000_000, available=True),
                instance_type("g6-standard-4", 72_000_000, available=False),
            ),
        }
        any_kube: Any = kube
        log = JsonLogger([io.StringIO()])
        runtime = Runtime(any_kube, cloud, clock, any_kube, any_kube, metrics, log)
        offerings = Offerings(runtime)
        for name in ("a", "b"):
            runtime.state.observe(pool(name))
        assert await offerings.step() == 60
        assert told(offerings) == {
            "cpu_cores": {("g6-standard-2",): 2, ("g6-standard-4",): 2},
            "memory_bytes": {("g6-standard-2",): 4 << 30, ("g6-standard-4",): 4 << 30},
            "offering_available": {
                ("g6-standard-2", "on-demand", "us-ord"): 1,
                ("g6-standard-4", "on-demand", "us-ord"): 0,
            },
            "offering_price_estimate": {
                ("g6-standard-2", "on-demand", "us-ord"): 0.036,
                ("g6-standard-4", "on-demand", "us-ord"): 0.072,
            },
        }
        cloud.broken = {"a", "b"}
        before = told(offerings)
        await offerings.step()
        assert told(offerings) == before
        runtime.state.forget(pool("b"))
        await offerings.step()
        assert told(offerings)["offering_available"] == {("g6-standard-2", "on-demand", "us-ord"): 0}

    run_virtual(go())


def told(offerings: Offerings) -> dict[str, dict[tuple[str, ...], float]]:
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for name, labels_of, value in offerings.readings():
        found.setdefault(name.removeprefix("karpenter_cloudprovider_instance_type_"), {})[labels_of] = value
    return found
