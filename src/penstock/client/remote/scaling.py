"""The fleets of a server elsewhere."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import quote

import msgspec

from penstock.client.remote.transport import Transport
from penstock.domain.scaling.fleet_run import Decision
from penstock.domain.scaling.pressure import Pressure
from penstock.domain.scaling.recommendation import Replicas, Sample


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    part: str
    code: str
    text: str
    since_at: datetime


class Change(msgspec.Struct, frozen=True, kw_only=True):
    at: datetime
    change: int
    wanted: int
    reason: str
    is_done: bool


class Fleet(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
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
    troubles: list[Trouble] = []
    seen_at: datetime | None = None
    seen_by: str | None = None
    wanted: int | None = None
    replicas: Replicas | None = None
    sample: Sample | None = None
    pressure: Pressure | None = None
    decision: Decision | None = None
    last_change: Change | None = None
    queues: list[str] = []


class Decided(msgspec.Struct, frozen=True):
    at: datetime
    decision: dict[str, Any]


class _Fleets(msgspec.Struct, frozen=True):
    fleets: list[Fleet]


class _Decisions(msgspec.Struct, frozen=True):
    decisions: list[Decided]


class _Wanted(msgspec.Struct, frozen=True):
    value: int


_fleet = msgspec.json.Decoder(Fleet)
_fleets = msgspec.json.Decoder(_Fleets)
_decisions = msgspec.json.Decoder(_Decisions)
_wanted = msgspec.json.Decoder(_Wanted)


class RemoteScaling:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get(self, fleet: str) -> Fleet:
        """Raises FleetNotFound."""
        return _fleet.decode(self._transport.call("GET", _path(fleet)).body)

    def decisions(self, fleet: str, *, limit: int = 10) -> list[Decided]:
        """Newest first; raises FleetNotFound."""
        path = f"{_path(fleet)}/decisions?limit={limit}"
        return _decisions.decode(self._transport.call("GET", path).body).decisions

    def wanted(self, fleet: str) -> int:
        """Raises FleetNotFound and FleetNotWatched."""
        return _wanted.decode(self._transport.call("GET", f"{_path(fleet)}/wanted").body).value

    def list(self) -> list[Fleet]:
        """By their names."""
        return _fleets.decode(self._transport.call("GET", "/v1/scaling").body).fleets


def _path(fleet: str) -> str:
    return f"/v1/scaling/{quote(fleet, safe='')}"
