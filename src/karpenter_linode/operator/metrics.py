"""Metrics under the contract's names, for Prometheus (spec/karpenter-lifecycle.md 7.1, spec/linode-provider.md 5.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client import disable_created_metrics as _disable_created_metrics
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from karpenter_linode.operator.metric_table import METRICS
from karpenter_linode.operator.quantiles import QuantileSummary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from prometheus_client.metrics_core import Metric

    from karpenter_linode.operator.metric_table import MetricSpec
    from karpenter_linode.ports import Logger

Reading = tuple[str, tuple[str, ...], float]
"""A value made up for a scrape: the metric, the values of its labels in the order of its labels, the value."""

_LONGEST_VALUE: Final = 512


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
        self._metrics: dict[str, Any] = {
            name: _made(name, spec, self.registry) for name, spec in METRICS.items() if not spec.read
        }

    def increment(self, name: str, labels: Mapping[str, str], by: float = 1) -> None:
        """Add to a counter."""
        series = self._series(name, labels)
        if series is not None:
            series.inc(by)

    def observe(self, name: str, labels: Mapping[str, str], value: float) -> None:
        """Add a sample to a histogram or summary."""
        series = self._series(name, labels)
        if isinstance(series, QuantileSummary):
            series.observe(labels, value)
        elif series is not None:
            series.observe(value)

    def set_gauge(self, name: str, labels: Mapping[str, str], value: float) -> None:
        """Set a gauge."""
        series = self._series(name, labels)
        if series is not None:
            series.set(value)

    def text(self, readings: Iterable[Reading] = ()) -> bytes:
        """What a scrape gets. May be called by another thread than the one that counts.

        Args:
            readings: values of the metrics that are read.
        """
        shown = CollectorRegistry()
        shown.register(_Readings(readings))
        return generate_latest(self.registry) + generate_latest(shown)

    def _series(self, name: str, labels: Mapping[str, str]) -> Any:
        spec, metric = METRICS.get(name), self._metrics.get(name)
        if spec is None or metric is None or set(spec.labels) != set(labels):
            if name not in self._dropped:
                self._dropped.add(name)
                self._logger.error("dropping an unknown metric", metric=name, labels=sorted(labels))
            return None
        return metric.labels(**labels) if spec.labels and not isinstance(metric, QuantileSummary) else metric


class _Readings(Collector):
    """Readings as gauges; those that are read from nothing at the moment are there without a value."""

    def __init__(self, readings: Iterable[Reading]) -> None:
        self._readings = readings

    def describe(self) -> Iterable[Metric]:
        """Nothing: names are unique by the table that they come from."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """One family for each metric."""
        families = {
            name: GaugeMetricFamily(name, spec.help, labels=spec.labels) for name, spec in METRICS.items() if spec.read
        }
        for name, values, value in self._readings:
            families[name].add_metric([text[:_LONGEST_VALUE] for text in values], value)
        yield from families.values()


def _made(name: str, spec: MetricSpec, registry: CollectorRegistry) -> Any:
    match spec.kind:
        case "counter":
            return Counter(name, spec.help, spec.labels, registry=registry)
        case "gauge":
            return Gauge(name, spec.help, spec.labels, registry=registry)
        case "histogram":
            return Histogram(name, spec.help, spec.labels, buckets=spec.buckets, registry=registry)
        case "summary":
            summary = QuantileSummary(name, spec.help, spec.labels)
            registry.register(summary)
            return summary
