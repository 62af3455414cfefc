"""Summaries with quantiles, which the Prometheus client for Python does not have."""

from __future__ import annotations

import math
import time
from collections import deque
from threading import Lock
from typing import TYPE_CHECKING, Final

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

QUANTILES: Final = (0.0, 0.5, 0.9, 0.99, 1.0)
_WINDOW: Final = 600.0
_KEPT: Final = 1000


class _Window:
    """The count and sum of all samples, and the youngest of them."""

    def __init__(self) -> None:
        self.count, self.sum = 0, 0.0
        self._samples: deque[tuple[float, float]] = deque(maxlen=_KEPT)

    def add(self, value: float, now: float) -> None:
        self.count += 1
        self.sum += value
        self._samples.append((now, value))

    def sorted(self, now: float) -> list[float]:
        while self._samples and now - self._samples[0][0] > _WINDOW:
            self._samples.popleft()
        return sorted(value for _, value in self._samples)


class QuantileSummary(Collector):
    """A summary whose quantiles are exact over a window: the last ten minutes, at most the last thousand samples.

    Count and sum go back to the start of the process. Where the window is empty quantiles are not a number, as other
    clients have it.

    Args:
        name: of the metric.
        text: what it tells.
        labels: its labels.
        monotonic: seconds that only go forward.
    """

    def __init__(
        self, name: str, text: str, labels: tuple[str, ...], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._name, self._text, self._labels, self._monotonic = name, text, labels, monotonic
        self._windows: dict[tuple[str, ...], _Window] = {}
        self._lock = Lock()  # scrapes are answered by another thread
        if not labels:
            self._windows[()] = _Window()

    def observe(self, labels: Mapping[str, str], value: float) -> None:
        """Add a sample."""
        key = tuple(labels[name] for name in self._labels)
        with self._lock:
            self._windows.setdefault(key, _Window()).add(value, self._monotonic())

    def collect(self) -> Iterator[Metric]:
        """What a scrape gets."""
        metric = Metric(self._name, self._text, "summary")
        now = self._monotonic()
        with self._lock:
            for key, window in self._windows.items():
                labels = dict(zip(self._labels, key, strict=True))
                values = window.sorted(now)
                for quantile in QUANTILES:
                    metric.add_sample(self._name, {**labels, "quantile": f"{quantile:g}"}, _at(values, quantile))
                metric.add_sample(f"{self._name}_count", labels, window.count)
                metric.add_sample(f"{self._name}_sum", labels, window.sum)
        yield metric


def _at(values: list[float], quantile: float) -> float:
    """The smallest value that at least that share of all values does not exceed."""
    if not values:
        return math.nan
    return values[max(math.ceil(quantile * len(values)) - 1, 0)]
