"""Which readings a scrape shows when."""

from __future__ import annotations

import asyncio
import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from karpenter_linode.controllers.node_pool import NodeClassController
from karpenter_linode.controllers.runtime import Runtime
from karpenter_linode.model import kinds
from karpenter_linode.operator.logging import JsonLogger
from karpenter_linode.operator.metered_cloud import MeteredCloud
from karpenter_linode.operator.metrics import PrometheusMetrics
from karpenter_linode.operator.offerings import Offerings
from karpenter_linode.operator.scrape import Scrape, Sources

START = datetime(2026, 1, 1, tzinfo=UTC)
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "n", "resourceVersion": "1"}}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": 'p"\n', "namespace": "team", "uid": "p", "resourceVersion": "1"},
    "status": {"phase": "Running"},
}


class SetClock:
    """Time that stands still until it is set."""

    def __init__(self) -> None:
        self.time = START

    def now(self) -> datetime:
        return self.time

    async def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


class Watching:
    reconnects = 3
    unreadable_objects = 0

    def staleness(self) -> dict[str, float]:
        return {"pods": 1.5}


class Events:
    dropped = 2


class NamedCloud:
    name = "linode"


def scraped(*, leading: bool, observability: bool = True, seconds: float = 0) -> dict[str, list[Any]]:
    """Samples by family, of a process that mirrors a node and a pod."""

    async def go() -> str:
        clock, port = SetClock(), None
        unused: Any = port
        log = JsonLogger([io.StringIO()])
        metrics = PrometheusMetrics(log)
        cloud: Any = NamedCloud()
        runtime = Runtime(unused, cloud, clock, unused, unused, metrics, log)
        for plain in (NODE, POD):
            runtime.state.observe(kinds.from_manifest(plain))
        scrape = Scrape(metrics, "1.2.3", "lease", observability=observability)
        before = (await scrape.text()).decode()
        assert 'version="1.2.3"' in before
        assert "karpenter_pods_state{" not in before
        watching: Any = Watching()
        events: Any = Events()
        queue = NodeClassController(runtime)
        queue.queue.add("default")
        scrape.sources = Sources(
            runtime,
            (queue,),
            MeteredCloud(cloud, "standard", clock, metrics),
            Offerings(runtime),
            watching,
            events,
            clock.now(),
        )
        scrape.leading = leading
        clock.time += timedelta(seconds=seconds)
        return (await scrape.text()).decode()

    text = asyncio.run(go())
    return {family.name: list(family.samples) for family in text_string_to_metric_families(text)}


def test_a_leader_tells_of_the_cluster() -> None:
    found = scraped(leading=True, seconds=7)
    (pod,) = found["karpenter_pods_state"]
    assert pod.labels["name"] == 'p"\n'
    assert {sample.labels["node_name"] for sample in found["karpenter_nodes_current_lifetime_seconds"]} <= {"n"}
    assert [sample.value for sample in found["leader_election_master_status"]] == [1]
    assert [sample.value for sample in found["karpenter_cluster_state_node_count"]] == [1]
    assert [sample.value for sample in found["karpenter_cluster_state_synced"]] == [0]
    assert [sample.value for sample in found["karpenter_cluster_state_unsynced_time_seconds"]] == [7]
    (depth,) = found["workqueue_depth"]
    assert (depth.labels, depth.value) == ({"name": "nodeclass", "controller": "nodeclass"}, 1)
    assert [sample.value for sample in found["controller_runtime_max_concurrent_reconciles"]] == [10]
    assert [sample.value for sample in found["karpenter_linode_watch_staleness_seconds"]] == [1.5]
    assert [sample.value for sample in found["karpenter_linode_events_dropped"]] == [2]


@pytest.mark.parametrize(("leading", "observability"), [(False, True), (True, False)])
def test_a_replica_that_stands_by_and_one_that_is_told_not_to_tell_only_of_themselves(
    leading: bool, observability: bool
) -> None:
    found = scraped(leading=leading, observability=observability)
    assert found["karpenter_pods_state"] == []
    assert found["operator_node_status_condition_count"] == []
    assert [sample.value for sample in found["karpenter_linode_watch_reconnects"]] == [3]
    assert len(found["karpenter_cluster_state_synced"]) == 1
