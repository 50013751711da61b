"""Metrics of fleets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from penstock.domain.scaling.fleet_status import FleetStatus
from penstock.edge.metrics.text import family

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
