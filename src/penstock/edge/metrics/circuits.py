"""Circuits and deliveries in Prometheus' text form.

Those of circuits are of the store, the same on every node; those of deliveries are of this node.
gateleen's own gauges are there too, under gateleen's names, for circuits whose rule names one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from penstock.domain.circuit.circuit import CircuitState
from penstock.edge.metrics.labels import escaped
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
    return "".join(f"{line}\n" for line in lines)


def _held(views: Sequence[CircuitView], overview: CircuitsOverview) -> Iterator[str]:
    name = "penstock_circuit_held_queues"
    yield from _gauge(name, "Queues that a circuit holds, those that wait to be unheld included.")
    for view in views:
        yield f"{name}{_labels(view)} {view.held}"
    removed = overview.held.keys() - overview.circuits.keys()
    for one in sorted(removed):  # their rules are gone, and with them the names of their routes
        yield f'{name}{{circuit="{one}",route=""}} {overview.held[one]}'
    name = "penstock_circuit_awaiting_unhold"
    yield from _gauge(name, "Queues of closed circuits that wait to be unheld.")
    yield f"{name} {overview.awaiting_unhold}"


def _circuits(views: Sequence[CircuitView]) -> Iterator[str]:
    yield from _gauge("penstock_circuit_state", f"State of a circuit. {_STATE}")
    for view in views:
        yield f"penstock_circuit_state{_labels(view)} {_STATES[view.circuit.state]}"
    yield from _gauge("penstock_circuit_fail_ratio", "Share of failures in percent.")
    for view in views:
        yield f"penstock_circuit_fail_ratio{_labels(view)} {view.circuit.fail_ratio}"
    named = [(view.metric_name, view) for view in views if view.metric_name is not None]
    yield from _gauge("gateleen_circuitbreaker_status", f"As gateleen has it. {_STATE}")
    for name, view in named:
        state = _STATES[view.circuit.state]
        yield f"gateleen_circuitbreaker_status{{metricName={_text(name)}}} {state}"
    yield from _gauge("gateleen_circuitbreaker_failratio", "As gateleen has it: percent.")
    for name, view in named:
        ratio = view.circuit.fail_ratio
        yield f"gateleen_circuitbreaker_failratio{{metricName={_text(name)}}} {ratio}"


def _deliveries(deliveries: Sequence[tuple[str, RouteTally]]) -> Iterator[str]:
    name = "penstock_deliveries_total"
    yield f"# HELP {name} Attempts of this node to push a delivery, by how they ended."
    yield f"# TYPE {name} counter"
    for pattern, of_route in deliveries:
        for ended, count in of_route.counts.items():
            yield f'{name}{{route={_text(pattern)},outcome="{ended}"}} {count}'


def _durations(deliveries: Sequence[tuple[str, RouteTally]]) -> Iterator[str]:
    yield f"# HELP {_DURATION} How long attempts of this node to push a delivery took."
    yield f"# TYPE {_DURATION} histogram"
    for pattern, of_route in deliveries:
        route = f"route={_text(pattern)}"
        counts = list(accumulate(of_route.buckets))
        for at_most, count in zip(BUCKETS_MS, counts, strict=False):
            yield f'{_DURATION}_bucket{{{route},le="{at_most / 1000:g}"}} {count}'
        yield f'{_DURATION}_bucket{{{route},le="+Inf"}} {counts[-1]}'
        yield f"{_DURATION}_sum{{{route}}} {of_route.took_ms / 1000:.3f}"
        yield f"{_DURATION}_count{{{route}}} {counts[-1]}"


def _gauge(name: str, meaning: str) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} gauge"


def _labels(view: CircuitView) -> str:
    labels = f'circuit="{view.hash}",route={_text(view.circuit.pattern)}'
    if view.metric_name is not None:
        labels += f",metric_name={_text(view.metric_name)}"
    return f"{{{labels}}}"


def _text(value: str) -> str:
    return f'"{escaped(value)}"'
