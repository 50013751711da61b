"""Metrics of circuits and deliveries.

Circuit metrics are the same on every node; delivery metrics are this node's own.  Circuits whose
rule has a metric name also have gateleen's gauges, under gateleen's names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from penstock.domain.circuit.circuit import CircuitState
from penstock.edge.metrics.text import Sample, family, sample
from penstock.runtime.pusher.tally import BUCKETS_MS, RouteTally
from penstock.services.circuits.circuits import CircuitsOverview, CircuitView

_STATES = {CircuitState.CLOSED: 0, CircuitState.HALF_OPEN: 1, CircuitState.OPEN: 2}
_STATE = "0: closed, 1: half-open, 2: open."
_DURATION = "penstock_delivery_duration_seconds"


def render(overview: CircuitsOverview, deliveries: Sequence[tuple[str, RouteTally]]) -> str:
    views = sorted(overview.circuits.values(), key=lambda view: view.circuit.pattern)
    lines = [
        *_circuits(views),
        *_held(views, overview),
        *_deliveries(deliveries),
        *_durations(deliveries),
    ]
    return "".join(lines)


def _circuits(views: Sequence[CircuitView]) -> Iterator[str]:
    states = [(view, _STATES[view.circuit.state]) for view in views]
    ratios = [(view, view.circuit.fail_ratio) for view in views]
    yield from family(
        "penstock_circuit_state",
        f"State of a circuit. {_STATE}",
        ((_labels(view), state) for view, state in states),
    )
    yield from family(
        "penstock_circuit_fail_ratio",
        "Percentage of failed calls.",
        ((_labels(view), ratio) for view, ratio in ratios),
    )
    yield from family(
        "gateleen_circuitbreaker_status",
        f"State of a circuit, under gateleen's name. {_STATE}",
        _gateleen_samples(states),
    )
    yield from family(
        "gateleen_circuitbreaker_failratio",
        "Percentage of failed calls, under gateleen's name.",
        _gateleen_samples(ratios),
    )


def _gateleen_samples(values: Sequence[tuple[CircuitView, int]]) -> Iterator[Sample]:
    for view, value in values:
        if view.metric_name is not None:
            yield {"metricName": view.metric_name}, value


def _held(views: Sequence[CircuitView], overview: CircuitsOverview) -> Iterator[str]:
    # Circuits whose rule was removed may still hold queues; their route is unknown.
    removed = sorted(overview.held.keys() - overview.circuits.keys())
    yield from family(
        "penstock_circuit_held_queues",
        "Queues that a circuit holds, including those that wait to be released.",
        [
            *((_labels(view), view.held) for view in views),
            *(({"circuit": one, "route": ""}, overview.held[one]) for one in removed),
        ],
    )
    yield from family(
        "penstock_circuit_awaiting_unhold",
        "Queues of closed circuits that wait to be released.",
        [({}, overview.awaiting_unhold)],
    )


def _deliveries(deliveries: Sequence[tuple[str, RouteTally]]) -> Iterator[str]:
    yield from family(
        "penstock_deliveries_total",
        "Push attempts of this node, by outcome.",
        (
            ({"route": pattern, "outcome": str(outcome)}, count)
            for pattern, of_route in deliveries
            for outcome, count in of_route.counts.items()
        ),
        kind="counter",
    )


def _durations(deliveries: Sequence[tuple[str, RouteTally]]) -> Iterator[str]:
    yield from family(_DURATION, "Duration of this node's push attempts.", (), kind="histogram")
    for pattern, of_route in deliveries:
        route = {"route": pattern}
        counts = list(accumulate(of_route.buckets))
        for at_most, count in zip(BUCKETS_MS, counts, strict=False):
            yield sample(f"{_DURATION}_bucket", {**route, "le": f"{at_most / 1000:g}"}, count)
        yield sample(f"{_DURATION}_bucket", {**route, "le": "+Inf"}, counts[-1])
        yield sample(f"{_DURATION}_sum", route, f"{of_route.took_ms / 1000:.3f}")
        yield sample(f"{_DURATION}_count", route, counts[-1])


def _labels(view: CircuitView) -> dict[str, str]:
    labels = {"circuit": view.hash, "route": view.circuit.pattern}
    return labels if view.metric_name is None else {**labels, "metric_name": view.metric_name}
