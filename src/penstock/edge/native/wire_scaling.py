"""Fleets in the JSON of the native API."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.domain.fact import Fact
from penstock.domain.scaling.fleet_run import Decision
from penstock.domain.scaling.fleet_status import FleetStatus, Made, Trouble, is_watched
from penstock.domain.scaling.pressure import Pressure
from penstock.domain.scaling.recommendation import Replicas, Sample
from penstock.edge.instants import to_text


class MadeOut(msgspec.Struct, kw_only=True):
    at: str
    change: int
    wanted: int
    reason: str
    is_done: bool


class TroubleOut(msgspec.Struct, kw_only=True):
    part: str
    code: str
    text: str
    since_at: str


class FleetOut(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A fleet as its autoscaler saw it last; what is not known is left out."""

    name: str
    group: str
    queue: str
    source: str
    profile: str
    replicas_by: str
    min: int
    max: int
    interval_ms: int
    is_watched: bool
    is_dry: bool
    pressure_level: int
    troubles: list[TroubleOut]
    seen_at: str | None = None
    seen_by: str | None = None
    wanted: int | None = None
    replicas: Replicas | None = None
    sample: Sample | None = None
    pressure: Pressure | None = None
    decision: Decision | None = None
    last_change: MadeOut | None = None
    queues: list[str] = []


class FleetsOut(msgspec.Struct):
    fleets: list[FleetOut]


class DecidedOut(msgspec.Struct):
    at: str
    decision: dict[str, Any]


class DecisionsOut(msgspec.Struct):
    decisions: list[DecidedOut]
    next: str | None


class WantedOut(msgspec.Struct):
    value: int


def fleet_out(status: FleetStatus, *, now: int) -> FleetOut:
    return FleetOut(
        name=status.name,
        group=status.group,
        queue=status.queue,
        source=status.source,
        profile=status.profile,
        replicas_by=status.kind,
        min=status.min,
        max=status.max,
        interval_ms=status.interval_ms,
        is_watched=is_watched(status, now=now),
        is_dry=status.is_dry,
        pressure_level=status.level,
        troubles=[_trouble_out(trouble) for trouble in status.troubles],
        seen_at=to_text(status.seen_at) if status.seen_at else None,
        seen_by=status.seen_by,
        wanted=status.wanted,
        replicas=status.replicas,
        sample=status.sample,
        pressure=status.pressure,
        decision=status.decision,
        last_change=None if status.made is None else _made_out(status.made),
        queues=list(status.queues),
    )


def decided_out(fact: Fact) -> DecidedOut:
    return DecidedOut(to_text(fact.at), msgspec.json.decode(fact.data))


def _made_out(made: Made) -> MadeOut:
    return MadeOut(
        at=to_text(made.at),
        change=made.change,
        wanted=made.wanted,
        reason=made.reason,
        is_done=made.is_done,
    )


def _trouble_out(trouble: Trouble) -> TroubleOut:
    return TroubleOut(
        part=trouble.part, code=trouble.code, text=trouble.text, since_at=to_text(trouble.since)
    )
