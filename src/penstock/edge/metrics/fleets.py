"""Metrics of fleets in Prometheus' text form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from penstock.domain.scaling.fleet_status import FleetStatus
from penstock.edge.metrics.labels import escaped

_GAUGES: dict[str, tuple[str, Callable[[FleetStatus], float | None]]] = {
    "penstock_fleet_wanted": ("Workers that there should be.", lambda one: one.wanted),
    "penstock_fleet_running": (
        "Workers that run.",
        lambda one: one.replicas.running if one.replicas else None,
    ),
    "penstock_fleet_starting": (
        "Workers that start.",
        lambda one: one.replicas.starting if one.replicas else None,
    ),
    "penstock_fleet_backlog": (
        "Messages that wait for the fleet, in staging queues, too.",
        lambda one: _backlog(one),
    ),
    "penstock_fleet_oldest_seconds": (
        "Age of the oldest message that waits for the fleet.",
        lambda one: _oldest_s(one),
    ),
    "penstock_fleet_consume_rate": (
        "Messages a second that were taken from its queue.",
        lambda one: round(one.sample.consume_rate, 3) if one.sample else None,
    ),
    "penstock_fleet_pressure_level": ("Pressure on its source, 0 to 3.", lambda one: one.level),
    "penstock_fleet_troubles": ("Things that do not work.", lambda one: len(one.troubles)),
    "penstock_fleet_seen_seconds": (
        "When it was looked at last, as Unix time.",
        lambda one: one.seen_at // 1000 if one.seen_at else None,
    ),
}


def render_fleets(fleets: Sequence[FleetStatus]) -> str:
    return "".join(f"{line}\n" for line in _lines(fleets)) if fleets else ""


def _lines(fleets: Sequence[FleetStatus]) -> Iterator[str]:
    for name, (help_text, value_of) in _GAUGES.items():
        yield f"# HELP {name} {help_text}"
        yield f"# TYPE {name} gauge"
        for fleet in fleets:
            value = value_of(fleet)
            if value is not None:
                yield f'{name}{{fleet="{fleet.name}",group="{escaped(fleet.group)}"}} {value}'


def _backlog(fleet: FleetStatus) -> int | None:
    if fleet.sample is None:
        return None
    return fleet.sample.ready + sum(one.ready for one in fleet.sample.staged)


def _oldest_s(fleet: FleetStatus) -> float | None:
    if fleet.sample is None or fleet.sample.oldest_ms is None:
        return None
    return fleet.sample.oldest_ms / 1000
