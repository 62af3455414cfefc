"""What a scrape gets: what was counted, and what the process and its mirrored cluster are like at that moment."""

from __future__ import annotations

import asyncio
import platform
from datetime import datetime
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from karpenter_linode.controllers.provisioner import Provisioner
from karpenter_linode.controllers.reconciler import Controller, Reconciler
from karpenter_linode.controllers.runtime import Runtime
from karpenter_linode.kube.events import KubeEvents
from karpenter_linode.kube.watching import Watching
from karpenter_linode.model.core import Node
from karpenter_linode.model.karpenter import NodeClaim
from karpenter_linode.operator.build import commit
from karpenter_linode.operator.metered_cloud import MeteredCloud
from karpenter_linode.operator.offerings import Offerings
from karpenter_linode.operator.readings.conditions import read_conditions
from karpenter_linode.operator.readings.node_pools import read_node_pools
from karpenter_linode.operator.readings.nodes import read_nodes
from karpenter_linode.operator.readings.pods import read_pods

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from karpenter_linode.cluster.view import View
    from karpenter_linode.controllers.pod_times import PodTimes
    from karpenter_linode.operator.metrics import PrometheusMetrics, Reading

_LINODE: Final = "karpenter_linode_"


class Sources(Struct, frozen=True):
    """What there is to read from, once the process has come so far.

    Args:
        runtime: the mirrored cluster.
        controllers: those that run.
        cloud: remembers the members of LKE pools.
        offerings: remembers what can be bought.
        watching: knows how fresh watches are.
        events: knows what was dropped.
        began: when mirroring began.
    """

    runtime: Runtime
    controllers: tuple[Controller, ...]
    cloud: MeteredCloud
    offerings: Offerings
    watching: Watching
    events: KubeEvents
    began: datetime


class Scrape:
    """Answers scrapes.

    Args:
        metrics: what is counted.
        version: of this program.
        lease: name of the lease.
        observability: whether pods, nodes, NodePools and conditions are read
            (``--disable-cluster-state-observability``).
    """

    def __init__(self, metrics: PrometheusMetrics, version: str, lease: str, *, observability: bool = True) -> None:
        self._metrics, self._version, self._lease, self._observability = metrics, version, lease, observability
        self._turn = asyncio.Lock()
        self.leading = False
        self.sources: Sources | None = None

    async def text(self) -> bytes:
        """What is shown now. Reading thousands of objects takes a while: another thread does it, once at a time."""
        now = list(self._process())
        sources = self.sources
        if sources is None:
            return self._metrics.text(now)
        now += self._state(sources)
        if not (self._observability and self.leading):
            return self._metrics.text(now)
        runtime = sources.runtime
        async with self._turn:
            view, times, moment = runtime.state.snapshot(), runtime.pod_clock.times(), runtime.now()
            return await asyncio.to_thread(lambda: self._metrics.text([*now, *read_cluster(view, times, moment)]))

    def _process(self) -> Iterator[Reading]:
        yield "karpenter_build_info", (self._version, "", platform.machine(), commit()), 1
        yield "leader_election_master_status", (self._lease,), int(self.leading)

    def _state(self, sources: Sources) -> Iterator[Reading]:
        runtime = sources.runtime
        synced = runtime.state.synced()
        waited = 0.0 if synced else (runtime.now() - sources.began).total_seconds()
        yield "karpenter_cluster_state_synced", (), int(synced)
        yield "karpenter_cluster_state_unsynced_time_seconds", (), waited
        yield "karpenter_cluster_state_node_count", (), node_count(runtime)
        yield from read_queues(sources.controllers)
        yield from read_decision(sources.controllers, runtime.now())
        yield from sources.cloud.readings()
        yield from sources.offerings.readings()
        for plural, seconds in sources.watching.staleness().items():
            yield _LINODE + "watch_staleness_seconds", (plural,), seconds
        yield _LINODE + "watch_reconnects", (), sources.watching.reconnects
        yield _LINODE + "unreadable_objects", (), sources.watching.unreadable_objects
        yield _LINODE + "events_dropped", (), sources.events.dropped


def read_cluster(view: View, times: Mapping[str, PodTimes], now: datetime) -> Iterator[Reading]:
    """Pods, nodes, NodePools and conditions.

    Args:
        view: a snapshot.
        times: what is remembered of pods that do not run yet, by UID.
        now: the time.
    """
    yield from read_nodes(view, now)
    yield from read_pods(view, times, now)
    yield from read_node_pools(view, now)
    yield from read_conditions(view, now)


def read_queues(controllers: Iterable[Controller]) -> Iterator[Reading]:
    """Work queues and workers, by controller."""
    for item in controllers:
        if isinstance(item, Reconciler):
            seconds = item.queue.under_way()
            series = (item.name, item.name)
            yield "controller_runtime_active_workers", (item.name,), item.busy
            yield "controller_runtime_max_concurrent_reconciles", (item.name,), item.workers
            yield "workqueue_depth", series, item.queue.ready
            yield "workqueue_unfinished_work_seconds", series, sum(seconds)
            yield "workqueue_longest_running_processor_seconds", series, max(seconds, default=0.0)


def read_decision(controllers: Iterable[Controller], now: datetime) -> Iterator[Reading]:
    """The scheduling decision that is being made, if any: pods that wait for their turn, and seconds so far."""
    for item in controllers:
        if isinstance(item, Provisioner) and item.under_way is not None:
            series = (item.name, item.under_way.scheduling_id)
            yield "karpenter_scheduler_queue_depth", series, item.under_way.simulation.waiting
            seconds = (now - item.under_way.began).total_seconds()
            yield "karpenter_scheduler_unfinished_work_seconds", series, seconds


def node_count(runtime: Runtime) -> int:
    """Nodes, and NodeClaims that have none yet."""
    nodes, claims = runtime.state.all(Node), runtime.state.all(NodeClaim)
    joined = {claim.status.node_name for claim in claims} & {node.name for node in nodes}
    return len(nodes) + len(claims) - len(joined)
