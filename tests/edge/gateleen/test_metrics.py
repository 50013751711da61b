"""Circuits and deliveries in /metrics."""

from __future__ import annotations

import pytest

from penstock.domain.circuit.circuit import Circuit, CircuitState, circuit_hash
from penstock.edge.metrics import render_circuits
from penstock.runtime.pusher.tally import PushResult, PushTally
from penstock.services.circuits.circuits import CircuitsOverview, CircuitView
from tests.edge.native.test_metrics import Metrics, parse

OPEN, HALF, CLOSED = CircuitState.OPEN, CircuitState.HALF_OPEN, CircuitState.CLOSED
ODD = '/a\\d+/"x"'


def a_view(
    pattern: str = "/shop/(.*)",
    state: CircuitState = CLOSED,
    *,
    ratio: int = 0,
    name: str | None = None,
    held: int = 0,
) -> CircuitView:
    circuit = Circuit(pattern=pattern, state=state, fail_ratio=ratio)
    return CircuitView(circuit_hash(pattern), circuit, name, held)


def render_metrics(
    *views: CircuitView,
    tally: PushTally | None = None,
    removed: dict[str, int] | None = None,
    awaiting: int = 0,
) -> Metrics:
    circuits = {view.hash: view for view in views}
    held = {view.hash: view.held for view in views if view.held} | (removed or {})
    return parse(
        render_circuits(CircuitsOverview(circuits, held, awaiting), (tally or PushTally()).all())
    )


@pytest.mark.parametrize(("state", "number"), [(CLOSED, 0), (HALF, 1), (OPEN, 2)])
def test_metrics_show_a_circuits_state_its_ratio_and_its_held_queues(
    state: CircuitState, number: int
) -> None:
    metrics = render_metrics(a_view(state=state, ratio=42, held=7, name="shop"))

    labels = {"circuit": circuit_hash("/shop/(.*)"), "route": "/shop/(.*)", "metric_name": "shop"}
    assert metrics.value("penstock_circuit_state", **labels) == number
    assert metrics.value("penstock_circuit_fail_ratio", **labels) == 42
    assert metrics.value("penstock_circuit_held_queues", **labels) == 7
    assert metrics.value("gateleen_circuitbreaker_status", metricName="shop") == number
    assert metrics.value("gateleen_circuitbreaker_failratio", metricName="shop") == 42


def test_queues_of_removed_circuits_and_those_that_wait_to_be_unheld_are_counted() -> None:
    metrics = render_metrics(a_view(held=1), removed={"0" * 32: 3}, awaiting=4)

    held = "penstock_circuit_held_queues"
    assert metrics.value(held, circuit="0" * 32, route="") == 3
    assert metrics.value(held, circuit=circuit_hash("/shop/(.*)")) == 1
    assert metrics.value("penstock_circuit_awaiting_unhold") == 4


def test_gateleens_gauges_are_of_circuits_with_a_name() -> None:
    metrics = render_metrics(a_view("/a"), a_view("/b", OPEN, name="x"))

    found = [s for s in metrics.samples if s.name == "gateleen_circuitbreaker_status"]
    assert [(sample.labels, sample.value) for sample in found] == [({"metricName": "x"}, 2)]


def test_a_pattern_may_have_any_characters() -> None:
    metrics = render_metrics(a_view(ODD))

    [sample] = [s for s in metrics.samples if s.name == "penstock_circuit_state"]
    assert sample.labels["route"].replace("\\\\", "\\").replace('\\"', '"') == ODD


def test_deliveries_are_counted_by_route_and_outcome_with_their_duration() -> None:
    tally = PushTally()
    tally.note("/a", PushResult.SUCCESS, took_ms=7)
    tally.note("/a", PushResult.SUCCESS, took_ms=40)
    tally.note("/a", PushResult.FAILURE, took_ms=500_000)

    metrics = render_metrics(tally=tally)

    name = "penstock_delivery_duration_seconds"
    assert metrics.value("penstock_deliveries_total", route="/a", outcome="success") == 2
    assert metrics.value("penstock_deliveries_total", route="/a", outcome="failure") == 1
    assert metrics.value("penstock_deliveries_total", route="/a", outcome="given_up") == 0
    of_buckets = [metrics.value(f"{name}_bucket", le=le) for le in ("0.005", "0.01", "0.05", "120")]
    assert of_buckets == [0, 1, 2, 2]
    assert metrics.value(f"{name}_bucket", le="+Inf") == 3
    assert metrics.value(f"{name}_count", route="/a") == 3
    assert metrics.value(f"{name}_sum", route="/a") == pytest.approx(500.047)
