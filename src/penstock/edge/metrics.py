"""Metrics in Prometheus' text format, with OpenTelemetry's messaging names where they exist.

Circuit metrics are the same on every node; delivery metrics are this node's own.  Circuits whose
rule has a metric name also have gateleen's gauges, under gateleen's names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from penstock.domain.circuit.circuit import CircuitState
from penstock.domain.limits import SECOND
from penstock.domain.queue.problem import OldTransaction
from penstock.domain.scaling.fleet_status import FleetStatus
from penstock.domain.store.damage import Damage
from penstock.domain.store.upkeep import Upkeep
from penstock.runtime.pusher.tally import BUCKETS_MS, RouteTally
from penstock.services.circuits.circuits import CircuitsOverview, CircuitView
from penstock.services.queues import QueueView

Sample = tuple[Mapping[str, str], float | str]  # labels and value


def family(
    name: str, help_text: str, samples: Iterable[Sample], *, kind: str = "gauge"
) -> Iterator[str]:
    """The lines of one metric: its description and samples."""
    yield f"# HELP {name} {help_text}\n"
    yield f"# TYPE {name} {kind}\n"
    for labels, value in samples:
        yield sample(name, labels, value)


def sample(name: str, labels: Mapping[str, str], value: float | str) -> str:
    pairs = ",".join(f'{label}="{_escape(text)}"' for label, text in labels.items())
    return f"{name}{{{pairs}}} {value}\n" if pairs else f"{name} {value}\n"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


_STATES = ("waiting", "ready", "leased", "dead")
# messaging.client.sent.messages and …consumed.messages are OpenTelemetry's names.
_COUNTERS = {
    "sent_total": ("messaging_client_sent_messages_total", "Messages sent to the queue."),
    "claimed_total": ("messaging_client_consumed_messages_total", "Messages claimed."),
    "done_total": ("penstock_messages_done_total", "Messages completed."),
    "dead_total": ("penstock_messages_dead_total", "Messages that died."),
    "cancelled_total": ("penstock_messages_cancelled_total", "Messages cancelled."),
    "failed_total": ("penstock_attempts_failed_total", "Attempts that failed."),
    "expired_total": ("penstock_leases_expired_total", "Leases that expired."),
}


def render_queues(
    views: Sequence[QueueView], *, waiting_claims: int, backend: str, damage: Damage | None = None
) -> str:
    return "".join([*_store(waiting_claims, backend, damage), *_queues(views)])


def _store(waiting_claims: int, backend: str, damage: Damage | None) -> Iterator[str]:
    # Damage whose page is not located yet counts as one page.
    damaged_pages = 0 if damage is None else max(1, len(damage.pages))
    yield from family(
        "penstock_claims_waiting", "Claims that wait for messages.", [({}, waiting_claims)]
    )
    yield from family("penstock_info", "The store of this node.", [({"backend": backend}, 1)])
    yield from family(
        "penstock_store_damaged_pages",
        "Pages of the store that requests failed to read.",
        [({}, damaged_pages)],
    )


def _queues(views: Sequence[QueueView]) -> Iterator[str]:
    yield from family(
        "penstock_queue_messages",
        "Messages in a queue by state.",
        (
            (
                {"messaging_destination_name": view.queue.name, "state": state},
                getattr(view.counts, state),
            )
            for view in views
            for state in _STATES
        ),
    )
    for field, (name, help_text) in _COUNTERS.items():
        samples = (
            (
                {"messaging_system": "penstock", "messaging_destination_name": view.queue.name},
                getattr(view.counts, field),
            )
            for view in views
        )
        yield from family(name, help_text, samples, kind="counter")


_CIRCUIT_STATES = {CircuitState.CLOSED: 0, CircuitState.HALF_OPEN: 1, CircuitState.OPEN: 2}
_STATE_TEXT = "0: closed, 1: half-open, 2: open."
_DURATION = "penstock_delivery_duration_seconds"


def render_circuits(
    overview: CircuitsOverview, deliveries: Sequence[tuple[str, RouteTally]]
) -> str:
    views = sorted(overview.circuits.values(), key=lambda view: view.circuit.pattern)
    lines = [
        *_circuits(views),
        *_held_queues(views, overview),
        *_deliveries(deliveries),
        *_durations(deliveries),
    ]
    return "".join(lines)


def _circuits(views: Sequence[CircuitView]) -> Iterator[str]:
    states = [(view, _CIRCUIT_STATES[view.circuit.state]) for view in views]
    ratios = [(view, view.circuit.fail_ratio) for view in views]
    yield from family(
        "penstock_circuit_state",
        f"State of a circuit. {_STATE_TEXT}",
        ((_circuit_labels(view), state) for view, state in states),
    )
    yield from family(
        "penstock_circuit_fail_ratio",
        "Percentage of failed calls.",
        ((_circuit_labels(view), ratio) for view, ratio in ratios),
    )
    yield from family(
        "gateleen_circuitbreaker_status",
        f"State of a circuit, under gateleen's name. {_STATE_TEXT}",
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


def _held_queues(views: Sequence[CircuitView], overview: CircuitsOverview) -> Iterator[str]:
    # Circuits whose rule was removed may still hold queues; their route is unknown.
    removed = sorted(overview.held.keys() - overview.circuits.keys())
    yield from family(
        "penstock_circuit_held_queues",
        "Queues that a circuit holds, including those that wait to be released.",
        [
            *((_circuit_labels(view), view.held) for view in views),
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


def _circuit_labels(view: CircuitView) -> dict[str, str]:
    labels = {"circuit": view.hash, "route": view.circuit.pattern}
    return labels if view.metric_name is None else {**labels, "metric_name": view.metric_name}


_GAUGES: dict[str, tuple[str, Callable[[FleetStatus], float | None]]] = {
    "penstock_fleet_wanted": ("Wanted number of workers.", lambda one: one.wanted),
    "penstock_fleet_running": (
        "Running workers.",
        lambda one: one.replicas.running if one.replicas else None,
    ),
    "penstock_fleet_starting": (
        "Starting workers.",
        lambda one: one.replicas.starting if one.replicas else None,
    ),
    "penstock_fleet_backlog": (
        "Messages waiting for the fleet, including those in staging queues.",
        lambda one: _backlog(one),
    ),
    "penstock_fleet_oldest_seconds": (
        "Age of the oldest message waiting for the fleet.",
        lambda one: _oldest_s(one),
    ),
    "penstock_fleet_consume_rate": (
        "Messages per second taken from its queue.",
        lambda one: round(one.sample.consume_rate, 3) if one.sample else None,
    ),
    "penstock_fleet_pressure_level": ("Pressure on its source, 0 to 3.", lambda one: one.level),
    "penstock_fleet_troubles": ("Current problems of the fleet.", lambda one: len(one.troubles)),
    "penstock_fleet_seen_seconds": (
        "Unix time of the last reading.",
        lambda one: one.seen_at // 1000 if one.seen_at else None,
    ),
}


def render_fleets(fleets: Sequence[FleetStatus]) -> str:
    return "".join(_lines(fleets)) if fleets else ""


def _lines(fleets: Sequence[FleetStatus]) -> Iterator[str]:
    for name, (help_text, value_of) in _GAUGES.items():
        values = ((fleet, value_of(fleet)) for fleet in fleets)
        yield from family(
            name,
            help_text,
            (
                ({"fleet": fleet.name, "group": fleet.group}, value)
                for fleet, value in values
                if value is not None
            ),
        )


def _backlog(fleet: FleetStatus) -> int | None:
    if fleet.sample is None:
        return None
    return fleet.sample.ready + sum(one.ready for one in fleet.sample.staged)


def _oldest_s(fleet: FleetStatus) -> float | None:
    if fleet.sample is None or fleet.sample.oldest_ms is None:
        return None
    return fleet.sample.oldest_ms / 1000


def render_transactions(found: Sequence[OldTransaction], *, now: int) -> str:
    ages = [(one, max(now - one.since, 0) / SECOND) for one in found if one.since is not None]
    oldest = max((age for _, age in ages), default=0)
    lines = [
        *family(
            "penstock_oldest_transaction_seconds",
            "Age of the oldest transaction that holds back vacuum.",
            [({}, f"{oldest:.3f}")],
        ),
        *family(
            "penstock_old_transaction_seconds",
            "Age of each transaction that has held back vacuum for a minute or longer.",
            ((_transaction_labels(one), f"{age:.3f}") for one, age in ages if one.is_old(now=now)),
        ),
    ]
    return "".join(lines)


def render_upkeep(found: Upkeep) -> str:
    """Empty for databases without vacuum."""
    if found.notifications is None:
        return ""
    tables = [({"table": table.name}, table) for table in found.tables]
    lines = [
        *family(
            "penstock_table_dead_rows",
            "Deleted rows that vacuum has not removed yet.",
            ((labels, table.dead_rows) for labels, table in tables),
        ),
        *family(
            "penstock_table_vacuum_timestamp_seconds",
            "When each table was last vacuumed.",
            (
                (labels, table.vacuumed_at // SECOND)
                for labels, table in tables
                if table.vacuumed_at is not None
            ),
        ),
        *family(
            "penstock_notification_queue_ratio",
            "How full PostgreSQL's queue of notifications is.",
            [({}, f"{found.notifications:.3f}")],
        ),
    ]
    return "".join(lines)


def _transaction_labels(one: OldTransaction) -> dict[str, str]:
    return {
        "kind": one.kind.value,
        "pid": "" if one.pid is None else str(one.pid),
        "name": one.name or "",
        "application": one.application or "",
        "user": one.user or "",
    }
