"""Fleets: what the autoscaler is told of workers, of where their work waits, and of who runs them.

One file says it all (docs/autoscaling.md).  The names are those of its keys; durations may be
written there as "10s".
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from penstock.domain.limits import MINUTE, SECOND
from penstock.domain.scaling.fleet_schedule import Period, limits_at
from penstock.domain.scaling.fleet_sources import (
    MOST,
    OWN,
    AtLeastOne,
    NotNegative,
    OwnSource,
    SourceSpec,
    Spec,
    Text,
)
from penstock.domain.scaling.pressure import PressureLimits
from penstock.domain.scaling.recommendation import MOST_REPLICAS, Profile

DEFAULT = "default"  # the profile that must be there

Words = Annotated[tuple[str, ...], Meta(min_length=1)]


# ---- who runs the workers


class Processes(Spec, frozen=True, kw_only=True, tag="processes"):
    """Processes of this machine: `penstock worker` for an `app`, or any program to `run`."""

    app: Text | None = None  # as for penstock worker: module:attribute
    run: tuple[Text, ...] = ()
    slots: AtLeastOne | None = None
    queues: tuple[Text, ...] = ()  # none: the fleet's
    arguments: tuple[str, ...] = ()  # more of penstock worker's
    url: Text | None = None  # where the workers get their jobs; None: the autoscaler's own store
    folder: Text | None = None  # they start in; None: the autoscaler's
    env: dict[str, str] = msgspec.field(default_factory=dict)
    start_ms: NotNegative | None = None  # so long a new one counts as starting at most
    drain_ms: NotNegative = MINUTE  # so long a busy one may take to finish when it is too many
    keep: bool = False  # they stay when the autoscaler ends

    def __post_init__(self) -> None:
        if (self.app is None) == (not self.run):
            raise ValueError("say either app or run")
        if self.run and (self.slots or self.queues or self.arguments or self.url):
            raise ValueError("slots, queues, arguments and url go with app, not with run")


class Command(Spec, frozen=True, kw_only=True, tag="command"):
    """Programs of yours, as argument lists; {fleet} {wanted} {current} {change} are filled in."""

    scale: Words
    count: Words
    timeout_ms: AtLeastOne = 30 * SECOND


class Kubernetes(Spec, frozen=True, kw_only=True, tag="kubernetes"):
    name: Text
    resource: Literal["deployment", "statefulset"] = "deployment"
    namespace: Text = "default"
    most: AtLeastOne = 100  # whatever the fleet's max says
    kubeconfig: Text | None = None  # None: the cluster it runs in, or else ~/.kube/config
    context: Text | None = None
    spare_busy: bool = False  # idle pods go first: needs the right to patch pods
    timeout_ms: AtLeastOne = 10 * SECOND


class External(Spec, frozen=True, kw_only=True, tag="external"):
    """Somebody else asks what is wanted (KEDA) and sees to it."""

    on_roll: bool = True  # they are known from the registry; no: what is wanted is believed


ReplicasSpec = Processes | Command | Kubernetes | External


# ---- fleets


class Fleet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str = ""  # the table's
    queue: Text | None = None
    queues: tuple[Text, ...] = ()  # in its place: several
    source: str = OWN
    profile: str = DEFAULT
    min: Annotated[int, Meta(ge=0, le=MOST_REPLICAS)] = 0
    max: Annotated[int, Meta(ge=1, le=MOST_REPLICAS)] = 5
    interval_ms: Annotated[int, Meta(ge=SECOND, le=MOST)] = 10 * SECOND
    cooldown_runs: NotNegative = 0
    cooldown_up_runs: NotNegative | None = None  # None: as the one above
    cooldown_down_runs: NotNegative | None = None
    cooldown_up_ms: NotNegative = 0
    cooldown_down_ms: NotNegative = 0
    steady_ms: NotNegative = 5 * MINUTE  # what was needed so long ago may be needed again
    keep_up: bool = True  # no fewer than what arrives needs
    yield_order: NotNegative | None = None  # None: never stopped under pressure
    patience_ms: NotNegative = 210 * SECOND  # so long requested ones may take to appear
    routes: tuple[Text, ...] = ()  # circuits on the way of its work
    schedule: tuple[Period, ...] = ()  # other limits at some times
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
        """With the limits that are in force."""
        if not self.schedule:
            return self
        least, most = limits_at(self.min, self.max, self.schedule, now=now)
        return msgspec.structs.replace(self, min=least, max=most)


class AlertSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    enabled: bool = True
    every_ms: AtLeastOne = 20 * MINUTE
    url: Text | None = None  # told to the log in any case


class Fleets(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that one file says.  Of one group one autoscaler acts at a time, on whatever machine."""

    group: Text = DEFAULT
    refresh_ms: Annotated[int, Meta(ge=SECOND, le=MOST)] = (
        5 * SECOND
    )  # how often the file is looked at
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
