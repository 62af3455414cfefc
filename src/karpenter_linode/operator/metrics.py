"""Metrics under the contract's names, for Prometheus (spec/karpenter-lifecycle.md 7.1, spec/linode-provider.md 5.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Summary, generate_latest
from prometheus_client import disable_created_metrics as _disable_created_metrics
from prometheus_client.process_collector import ProcessCollector

if TYPE_CHECKING:
    from collections.abc import Mapping

    from karpenter_linode.ports import Logger

_D: Final = (
    *(
        0.005,
        0.01,
        0.025,
        0.05,
        0.1,
        0.15,
        0.2,
        0.25,
        0.3,
        0.35,
        0.4,
        0.45,
        0.5,
        0.6,
        0.7,
        0.8,
        0.9,
        1,
        1.25,
        1.5,
        1.75,
    ),
    *(2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60, 120, 150, 300, 450, 600),
)
_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86400
_LIFETIMES: Final = (
    *(minutes * _MINUTE for minutes in (15, 30, 45)),
    *(hours * _HOUR for hours in (1, 2, 4, 6, 8, 10, 12, 16, 20)),
    *(days * _DAY for days in (1, 2, 3, 5, 10, 15, 20, 25, 30)),
)
_DISRUPTED: Final = ("reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode")
_DECISION: Final = ("decision", "reason", "consolidation_type")


class MetricSpec(Struct, frozen=True):
    """A metric.

    Args:
        kind: its type.
        labels: its labels.
        help: what it tells.
        buckets: of a histogram.
    """

    kind: Literal["counter", "gauge", "histogram", "summary"]
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = ()


def _doubling(count: int) -> tuple[float, ...]:
    return tuple(float(1 << exponent) for exponent in range(count))


METRICS: Final[dict[str, MetricSpec]] = {
    "karpenter_build_info": MetricSpec(
        "gauge", ("version", "goversion", "goarch", "commit"), "1, labelled with what this program is."
    ),
    "karpenter_nodeclaims_created_total": MetricSpec(
        "counter", ("reason", "nodepool", "min_values_relaxed"), "NodeClaims created."
    ),
    "karpenter_nodeclaims_terminated_total": MetricSpec(
        "counter", ("nodepool", "capacity_type", "zone"), "NodeClaims whose end is complete."
    ),
    "karpenter_nodeclaims_disrupted_total": MetricSpec("counter", _DISRUPTED, "NodeClaims given up, by reason."),
    "karpenter_pods_disruption_initiated_total": MetricSpec(
        "counter", _DISRUPTED, "Pods that had to move because their node was given up."
    ),
    "karpenter_nodeclaims_termination_duration_seconds": MetricSpec(
        "histogram", ("nodepool",), "From the deletion of a NodeClaim to its end.", _doubling(12)
    ),
    "karpenter_nodeclaims_instance_termination_duration_seconds": MetricSpec(
        "histogram", ("nodepool",), "From the call that deletes an instance to its end.", _doubling(11)
    ),
    "karpenter_nodes_created_total": MetricSpec("counter", ("nodepool", "zone"), "Nodes that joined."),
    "karpenter_nodes_terminated_total": MetricSpec("counter", ("nodepool", "zone"), "Nodes whose end is complete."),
    "karpenter_nodes_termination_duration_seconds": MetricSpec(
        "summary", ("nodepool",), "From the deletion of a Node to its end."
    ),
    "karpenter_nodes_drained_total": MetricSpec("counter", ("nodepool",), "Nodes drained."),
    "karpenter_nodes_lifetime_duration_seconds": MetricSpec(
        "histogram", ("nodepool",), "How long Nodes lived.", tuple(map(float, _LIFETIMES))
    ),
    "karpenter_pods_eviction_requests_total": MetricSpec("counter", ("code",), "Evictions asked for, by answer."),
    "karpenter_pods_drained_total": MetricSpec("counter", ("reason",), "Pods drained, by reason."),
    "karpenter_voluntary_disruption_decisions_total": MetricSpec("counter", _DECISION, "Disruptions decided."),
    "karpenter_voluntary_disruption_decisions_by_nodepool_total": MetricSpec(
        "counter", ("nodepool", *_DECISION), "Disruptions decided, by NodePool."
    ),
    "karpenter_voluntary_disruption_eligible_nodes": MetricSpec(
        "gauge", ("reason",), "Nodes that could be disrupted now."
    ),
    "karpenter_voluntary_disruption_failed_validations_total": MetricSpec(
        "counter", ("consolidation_type",), "Disruptions that did not hold when looked at again."
    ),
    "karpenter_nodepools_allowed_disruptions": MetricSpec(
        "gauge", ("nodepool", "reason"), "Nodes that the budgets allow to disrupt now."
    ),
    "karpenter_nodepools_nodes_consuming_budgets": MetricSpec(
        "gauge", ("nodepool", "reason"), "Nodes that count against the budgets now."
    ),
    "karpenter_cluster_state_node_count": MetricSpec("gauge", (), "Nodes and NodeClaims that are known."),
    "karpenter_cluster_state_synced": MetricSpec("gauge", (), "1 once every kind was listed."),
    "karpenter_scheduler_scheduling_duration_seconds": MetricSpec(
        "histogram", ("controller",), "How long a scheduling simulation took.", tuple(map(float, _D))
    ),
    "karpenter_scheduler_ignored_pods_count": MetricSpec("gauge", (), "Pods that scheduling does not look at."),
    "karpenter_scheduler_unschedulable_pods_count": MetricSpec(
        "gauge", ("controller",), "Pods without a place in the last simulation."
    ),
    "karpenter_scheduler_pending_pods_by_effective_zone_count": MetricSpec(
        "gauge", ("controller", "zone"), "Pending pods by the zone that they can run in, `flexible` or `none`."
    ),
    "client_go_request_total": MetricSpec("counter", ("code", "method"), "Requests to the API server."),
    "client_go_request_duration_seconds": MetricSpec(
        "histogram", ("verb", "group", "version", "kind", "subresource"), "How long they took.", tuple(map(float, _D))
    ),
    "karpenter_linode_api_requests_total": MetricSpec(
        "counter", ("method", "route", "code"), "Requests to the Linode API."
    ),
    "karpenter_linode_api_request_duration_seconds": MetricSpec(
        "histogram", ("method", "route"), "How long they took.", tuple(map(float, _D))
    ),
    "karpenter_linode_watch_staleness_seconds": MetricSpec(
        "gauge", ("resource",), "Since a watch last heard of the API server."
    ),
    "karpenter_linode_api_ratelimit_remaining": MetricSpec(
        "gauge", ("method", "route"), "Requests that the Linode API allows until its window ends."
    ),
    "karpenter_linode_watch_reconnects": MetricSpec("gauge", (), "Watches opened again after a fault, in all."),
    "karpenter_linode_unreadable_objects": MetricSpec("gauge", (), "Objects that could not be read, in all."),
    "karpenter_linode_events_dropped": MetricSpec("gauge", (), "Events dropped by rate limits or faults, in all."),
    "leader_election_master_status": MetricSpec("gauge", ("name",), "1 while this process leads."),
}
"""Every metric that this program has, with the contract's name where there is one."""


class PrometheusMetrics:
    """``ports.Metrics`` that Prometheus can scrape.

    What ``METRICS`` does not have, or not with these labels, is dropped and told of once: a mistake in counting must
    not stop what is counted.

    Args:
        logger: told of what is dropped.
    """

    def __init__(self, logger: Logger) -> None:
        self._logger = logger
        self._dropped: set[str] = set()
        _disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._metrics: dict[str, Any] = {name: _made(name, spec, self.registry) for name, spec in METRICS.items()}

    def increment(self, name: str, labels: Mapping[str, str], by: float = 1) -> None:
        """Add to a counter."""
        series = self._series(name, labels)
        if series is not None:
            series.inc(by)

    def observe(self, name: str, labels: Mapping[str, str], value: float) -> None:
        """Add a sample to a histogram or summary."""
        series = self._series(name, labels)
        if series is not None:
            series.observe(value)

    def set_gauge(self, name: str, labels: Mapping[str, str], value: float) -> None:
        """Set a gauge."""
        series = self._series(name, labels)
        if series is not None:
            series.set(value)

    def clear(self, name: str) -> None:
        """Drop every series of a metric with labels."""
        self._metrics[name].clear()

    def text(self) -> bytes:
        """What a scrape gets."""
        return generate_latest(self.registry)

    def _series(self, name: str, labels: Mapping[str, str]) -> Any:
        spec = METRICS.get(name)
        if spec is None or set(spec.labels) != set(labels):
            if name not in self._dropped:
                self._dropped.add(name)
                self._logger.error("dropping an unknown metric", metric=name, labels=sorted(labels))
            return None
        metric = self._metrics[name]
        return metric.labels(**labels) if spec.labels else metric


def _made(name: str, spec: MetricSpec, registry: CollectorRegistry) -> Any:
    match spec.kind:
        case "counter":
            return Counter(name, spec.help, spec.labels, registry=registry)
        case "gauge":
            return Gauge(name, spec.help, spec.labels, registry=registry)
        case "summary":
            return Summary(name, spec.help, spec.labels, registry=registry)
        case "histogram":
            return Histogram(name, spec.help, spec.labels, buckets=spec.buckets, registry=registry)
