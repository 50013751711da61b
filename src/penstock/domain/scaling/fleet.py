"""Fleets: the autoscaler's configuration of workers, their load sources and their managers.

It comes from one file (docs/autoscaling.md).  Field names are the keys of that file; durations may
be written there as "10s".
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from penstock.domain.limits import MINUTE, SECOND
from penstock.domain.scaling.fleet_schedule import Period, limits_at
from penstock.domain.scaling.fleet_sources import (
    MAX_NUMBER,
    OWN,
    AtLeastOne,
    NotNegative,
    OwnSource,
    SourceSpec,
    Spec,
    Text,
)
from penstock.domain.scaling.pressure import PressureLimits
from penstock.domain.scaling.recommendation import MAX_REPLICAS, Profile

DEFAULT = "default"  # the profile that must exist

ArgumentList = Annotated[tuple[str, ...], Meta(min_length=1)]


# ---- managers of the workers


class Processes(Spec, frozen=True, kw_only=True, tag="processes"):
    """Processes on this machine: `penstock worker` for an `app`, or any program to `run`."""

    app: Text | None = None  # as for penstock worker: module:attribute
    run: tuple[Text, ...] = ()
    slots: AtLeastOne | None = None
    queues: tuple[Text, ...] = ()  # empty: the fleet's
    arguments: tuple[str, ...] = ()  # further arguments of penstock worker
    url: Text | None = None  # where the workers get their jobs; None: the autoscaler's own store
    folder: Text | None = None  # their working folder; None: the autoscaler's
    env: dict[str, str] = msgspec.field(default_factory=dict)
    start_ms: NotNegative | None = None  # a new worker counts as starting for at most this long
    drain_ms: NotNegative = MINUTE  # how long a surplus worker may take to finish its work
    keep: bool = False  # workers keep running when the autoscaler exits

    def __post_init__(self) -> None:
        if (self.app is None) == (not self.run):
            raise ValueError("set either app or run")
        if self.run and (self.slots or self.queues or self.arguments or self.url):
            raise ValueError("slots, queues, arguments and url go with app, not with run")


class CommandSpec(Spec, frozen=True, kw_only=True, tag="command"):
    """The user's programs, as argument lists with {fleet} {wanted} {current} {change} filled in."""

    scale: ArgumentList
    count: ArgumentList
    timeout_ms: AtLeastOne = 30 * SECOND


class Kubernetes(Spec, frozen=True, kw_only=True, tag="kubernetes"):
    name: Text
    resource: Literal["deployment", "statefulset"] = "deployment"
    namespace: Text = "default"
    most: AtLeastOne = 100  # whatever the fleet's max is
    kubeconfig: Text | None = None  # None: the cluster it runs in, or else ~/.kube/config
    context: Text | None = None
    spare_busy: bool = False  # stop idle pods first; needs the right to patch pods
    timeout_ms: AtLeastOne = 10 * SECOND


class External(Spec, frozen=True, kw_only=True, tag="external"):
    """Another system (KEDA) reads the wanted number and applies it."""

    registered: bool = True  # count registered workers; false: assume that the wanted number runs


ReplicasSpec = Processes | CommandSpec | Kubernetes | External


# ---- fleets


class Fleet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str = ""  # the name of its table
    queue: Text | None = None
    queues: tuple[Text, ...] = ()  # instead of queue: several
    source: str = OWN
    profile: str = DEFAULT
    min: Annotated[int, Meta(ge=0, le=MAX_REPLICAS)] = 0
    max: Annotated[int, Meta(ge=1, le=MAX_REPLICAS)] = 5
    interval_ms: Annotated[int, Meta(ge=SECOND, le=MAX_NUMBER)] = 10 * SECOND
    cooldown_runs: NotNegative = 0
    cooldown_up_runs: NotNegative | None = None  # None: the same as cooldown_runs
    cooldown_down_runs: NotNegative | None = None
    cooldown_up_ms: NotNegative = 0
    cooldown_down_ms: NotNegative = 0
    steady_ms: NotNegative = 5 * MINUTE  # never fewer workers than were needed within this time
    keep_up: bool = True  # never fewer than arrivals need
    yield_order: NotNegative | None = None  # None: never stopped under pressure
    patience_ms: NotNegative = 210 * SECOND  # how long requested workers may take to appear
    routes: tuple[Text, ...] = ()  # circuits that its work passes through
    schedule: tuple[Period, ...] = ()  # other limits at certain times
    replicas: ReplicasSpec

    def __post_init__(self) -> None:
        if (self.queue is None) == (not self.queues):
            raise ValueError("set either queue or queues")
        if len(set(self.queues)) < len(self.queues):
            raise ValueError("a queue is named twice in queues")

    @property
    def all_queues(self) -> tuple[str, ...]:
        return self.queues or (self.queue or "",)

    def at(self, now: int) -> Fleet:
        """The fleet with the limits in force at this time."""
        if not self.schedule:
            return self
        least, most = limits_at(self.min, self.max, self.schedule, now=now)
        return msgspec.structs.replace(self, min=least, max=most)


class AlertSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    enabled: bool = True
    every_ms: AtLeastOne = 20 * MINUTE
    url: Text | None = None  # alerts are logged in any case


class Fleets(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file.  For each group one autoscaler acts at a time, on any machine."""

    group: Text = DEFAULT
    refresh_ms: Annotated[int, Meta(ge=SECOND, le=MAX_NUMBER)] = (
        5 * SECOND
    )  # how often the file is checked
    deadline_ms: AtLeastOne = 30 * SECOND  # for sources and managers to answer
    profiles: dict[str, Profile] = {}
    sources: dict[str, SourceSpec] = {}
    pressure: PressureLimits = PressureLimits()
    alerts: AlertSpec = AlertSpec()
    fleets: dict[str, Fleet] = {}

    def profile_of(self, fleet: Fleet) -> Profile:
        return self.profiles.get(fleet.profile, self.profiles[DEFAULT])

    def source_of(self, fleet: Fleet) -> SourceSpec:
        return self.sources.get(fleet.source, OwnSource())
