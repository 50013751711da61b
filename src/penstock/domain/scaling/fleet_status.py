"""The status of a fleet, stored after each run, so that any node can continue."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from penstock.domain.limits import MINUTE
from penstock.domain.scaling.fleet_run import Decision, FleetState
from penstock.domain.scaling.pressure import Pressure
from penstock.domain.scaling.recommendation import Profile, Replicas, Sample

DECISION = "scaling_decision"  # kinds of facts; the subject of most is the fleet
TROUBLE = "scaling_trouble"
RECOVERED = "scaling_recovered"
PROFILE_CHANGED = "scaling_profile_changed"  # the subject is the fleet
ALERT = "scaling_alert"  # the subject is the source

_RUNS_MISSED = 3  # plus a minute: then the fleet counts as not watched


class FleetTrouble(msgspec.Struct, frozen=True):
    part: str  # what is in trouble: "source", "replicas", …
    code: str
    text: str
    since: int


class LastChange(msgspec.Struct, frozen=True, kw_only=True):
    """The last decision that changed something, or would have."""

    at: int
    change: int
    wanted: int
    reason: str
    is_done: bool


class FleetStatus(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    group: str
    queue: str  # the first, if there are several
    source: str
    profile: str
    kind: str  # of replicas
    min: int
    max: int
    interval_ms: int
    seen_at: int
    seen_by: str
    is_dry: bool = False
    level: int = 0  # of pressure
    pressure: Pressure | None = None
    sample: Sample | None = None
    replicas: Replicas | None = None
    decision: Decision | None = None  # of the last run
    made: LastChange | None = None
    troubles: tuple[FleetTrouble, ...] = ()
    queues: tuple[str, ...] = ()  # if there are several
    file_profile: Profile | None = None  # of the fleets file, without overrides
    state: FleetState = FleetState()

    @property
    def all_queues(self) -> tuple[str, ...]:
        return self.queues or (self.queue,)

    @property
    def wanted(self) -> int | None:
        return self.state.wanted


class NewFact(msgspec.Struct, frozen=True):
    """A fact to be recorded."""

    kind: str
    subject: str
    data: Mapping[str, object]


def is_watched(status: FleetStatus, *, now: int) -> bool:
    """Whether an autoscaler still manages it; if not, the wanted number may be wrong."""
    return abs(now - status.seen_at) <= _RUNS_MISSED * status.interval_ms + MINUTE
