"""Tallies and gauges as the text that Prometheus reads. The one home of its client library."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from typing_extensions import override

from qmsup.actors.metrics import METRICS, Kind, Metric
from qmsup.actors.tallies import Labels, Spread, Tallies

Gauges = Mapping[str, Mapping[Labels, float]]
"""By metric, then by label values."""

_Family = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily
_PREFIX = "qmsup_"

T = TypeVar("T")


def exposition(gauges: Gauges, tallies: Sequence[Tallies]) -> str:
    """The text, format version 0.0.4: each metric that there is, those without a number yet by name alone.

    Args:
        gauges: what is so now.
        tallies: kept by several threads, no metric by more than one.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Shown(gauges, tallies))
    return generate_latest(registry).decode()


class _Shown(Collector):
    def __init__(self, gauges: Gauges, tallies: Sequence[Tallies]) -> None:
        self._gauges = gauges
        self._tallies = tallies

    @override
    def collect(self) -> Iterator[_Family]:
        for metric in METRICS:
            match metric.kind:
                case Kind.GAUGE:
                    yield self._gauge(metric)
                case Kind.COUNT:
                    yield self._count(metric)
                case Kind.SPREAD:
                    yield self._spread(metric)

    def _gauge(self, metric: Metric) -> GaugeMetricFamily:
        family = GaugeMetricFamily(_PREFIX + metric.name, metric.tells, labels=metric.labels)
        for labels, value in self._gauges.get(metric.name, {}).items():
            family.add_metric(labels, value)
        return family

    def _count(self, metric: Metric) -> CounterMetricFamily:
        family = CounterMetricFamily(_PREFIX + metric.name, metric.tells, labels=metric.labels)
        series = _all([tallies.counts for tallies in self._tallies], metric)
        for labels, value in series.items() or _of_nothing(metric, 0.0):
            family.add_metric(labels, value)
        return family

    def _spread(self, metric: Metric) -> HistogramMetricFamily:
        family = HistogramMetricFamily(_PREFIX + metric.name, metric.tells, labels=metric.labels)
        series = _all([tallies.spreads for tallies in self._tallies], metric)
        empty = Spread(metric.bounds, [0] * (len(metric.bounds) + 1))
        names = [*map(str, metric.bounds), "+Inf"]
        for labels, spread in series.items() or _of_nothing(metric, empty):
            up_to = itertools.accumulate(spread.counts)
            family.add_metric(labels, list(zip(names, up_to, strict=True)), spread.total)
        return family


def _all(kept: Sequence[Mapping[str, Mapping[Labels, T]]], metric: Metric) -> dict[Labels, T]:
    return {labels: n for by in kept for labels, n in by.get(metric.name, {}).items()}


def _of_nothing(metric: Metric, nothing: T) -> Sequence[tuple[Labels, T]]:
    """What has no labels is there from the start: a rate of it begins at zero, and not at nothing."""
    return () if metric.labels else (((), nothing),)
