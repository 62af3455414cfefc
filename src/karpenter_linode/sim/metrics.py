"""Metrics kept in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

LabelSet = tuple[tuple[str, str], ...]


class Sample(Struct):
    """A histogram or summary, by count and sum."""

    count: int = 0
    sum: float = 0.0


class MemoryMetrics:
    """``ports.Metrics``: values by metric name and label set."""

    def __init__(self) -> None:
        self.counters: dict[str, dict[LabelSet, float]] = {}
        self.gauges: dict[str, dict[LabelSet, float]] = {}
        self.samples: dict[str, dict[LabelSet, Sample]] = {}

    def increment(self, name: str, labels: Mapping[str, str], by: float = 1) -> None:
        """Add to a counter."""
        series = self.counters.setdefault(name, {})
        key = _key(labels)
        series[key] = series.get(key, 0) + by

    def observe(self, name: str, labels: Mapping[str, str], value: float) -> None:
        """Add a sample."""
        sample = self.samples.setdefault(name, {}).setdefault(_key(labels), Sample())
        sample.count += 1
        sample.sum += value

    def set_gauge(self, name: str, labels: Mapping[str, str], value: float) -> None:
        """Set a gauge."""
        self.gauges.setdefault(name, {})[_key(labels)] = value

    def counter(self, name: str, **labels: str) -> float:
        """The sum of a counter's series that carry these labels; 0 when it was never counted."""
        wanted = set(labels.items())
        return sum(value for key, value in self.counters.get(name, {}).items() if wanted <= set(key))


def _key(labels: Mapping[str, str]) -> LabelSet:
    return tuple(sorted(labels.items()))
