"""Fleets: current and wanted numbers of workers, and the reasons."""

from __future__ import annotations

from typing import Annotated, Any, Self

import msgspec

from penstock.api.operation import (
    AnswerRecord,
    DurationMs,
    Instant,
    Next,
    PageQuery,
    ToInstant,
    about,
    filtered,
    named,
)
from penstock.domain.errors import FleetNotWatched
from penstock.domain.fact import Fact
from penstock.domain.scaling import fleet_status as domain
from penstock.domain.scaling.fleet_run import Decision
from penstock.domain.scaling.pressure import Pressure
from penstock.domain.scaling.profile_overrides import ProfileOverrides
from penstock.domain.scaling.recommendation import Profile, Replicas, Sample


class LastChange(AnswerRecord, frozen=True):
    at: Annotated[Instant, about("When it was decided.")]
    change: Annotated[int, about("The number of workers added; negative: removed.")]
    wanted: Annotated[int, about("How many workers there should be.")]
    reason: Annotated[str, about("Why: one of the reasons that docs/autoscaling.md lists.")]
    is_done: Annotated[bool, about("False if it could not be carried out, or in a dry run.")]


class Trouble(AnswerRecord, frozen=True):
    part: Annotated[str, about("The part that does not work: source, replicas, …")]
    code: Annotated[str, about("A stable code that programs may rely on.")]
    text: Annotated[str, about("An explanation in plain English. Its wording may change.")]
    since_at: Annotated[Instant, about("When it began.")]

    @classmethod
    def of(cls, trouble: domain.FleetTrouble, instant: ToInstant) -> Self:
        return cls.copy_of(trouble, instant, since_at=instant(trouble.since))


class Fleet(AnswerRecord, frozen=True, omit_defaults=True):
    """A fleet as its autoscaler last saw it; fields without a value are left out."""

    name: Annotated[str, about("The fleet's name.")]
    group: Annotated[str, about("Its group, in which one autoscaler acts at a time.")]
    queue: Annotated[str, about("The queue that its workers serve; the first of several.")]
    source: Annotated[
        str, about("Where its queue is: `own`, or a source named in the fleets file.")
    ]
    profile: Annotated[str, about("The profile that is used to analyse its readings.")]
    replicas_by: Annotated[
        str, about("What runs its workers: processes, command, kubernetes or external.")
    ]
    min: Annotated[int, about("The minimum number of workers.")]
    max: Annotated[int, about("The maximum number of workers.")]
    interval_ms: Annotated[DurationMs, about("The time between two runs of its autoscaler.")]
    is_watched: Annotated[bool, about("True if an autoscaler has handled it recently.")]
    is_dry: Annotated[bool, about("True for a dry run.")]
    pressure_level: Annotated[int, about("The level of pressure on its source, from 0 to 3.")]
    troubles: Annotated[
        list[Trouble], about("The troubles of the fleet. Empty if everything works.")
    ]
    seen_at: Annotated[Instant | None, about("When its autoscaler last ran.")] = None
    seen_by: Annotated[str | None, about("The autoscaler that last ran it.")] = None
    wanted: Annotated[int | None, about("How many workers there should be.")] = None
    replicas: Annotated[Replicas | None, about("Its workers.")] = None
    sample: Annotated[Sample | None, about("The last reading of its queues.")] = None
    pressure: Annotated[Pressure | None, about("How full the broker is.")] = None
    decision: Annotated[Decision | None, about("The result of the last run.")] = None
    last_change: Annotated[
        LastChange | None, about("The last decision that added or removed workers.")
    ] = None
    queues: Annotated[list[str], about("All of its queues, if it has several.")] = msgspec.field(
        default_factory=list
    )

    @classmethod
    def of(cls, status: domain.FleetStatus, instant: ToInstant, *, now: int) -> Self:
        return cls.copy_of(
            status,
            instant,
            replicas_by=status.kind,
            is_watched=domain.is_watched(status, now=now),
            pressure_level=status.level,
            troubles=[Trouble.of(trouble, instant) for trouble in status.troubles],
            seen_at=instant(status.seen_at) if status.seen_at else None,
            last_change=None if status.made is None else LastChange.copy_of(status.made, instant),
            queues=[*status.queues],
        )


class Fleets(AnswerRecord, frozen=True):
    fleets: Annotated[list[Fleet], about("The fleets, by name.")]


class Decided(AnswerRecord, frozen=True):
    at: Annotated[Instant, about("When it was decided.")]
    decision: Annotated[dict[str, Any], about("The decision, its reason and its inputs.")]

    @classmethod
    def of(cls, fact: Fact, instant: ToInstant) -> Self:
        return cls(at=instant(fact.at), decision=msgspec.json.decode(fact.data))


class Decisions(AnswerRecord, frozen=True):
    decisions: Annotated[list[Decided], about("The decisions, newest first.")]
    next: Next


class Wanted(AnswerRecord, frozen=True):
    value: Annotated[int, about("How many workers there should be.")]


class FleetProfile(AnswerRecord, frozen=True):
    fleet: Annotated[str, about("The fleet's name.")]
    profile: Annotated[str, about("The name of its profile in the fleets file.")]
    overrides: Annotated[
        ProfileOverrides, about("The settings that override those of the fleets file.")
    ]
    settings: Annotated[
        Profile | None,
        about("The settings in force; null: its autoscaler has not reported them yet."),
    ]


LIST = filtered.get(
    "listFleets",
    "/v1/scaling",
    "List fleets with their last reading and the last decision.",
    Fleets,
)
GET = named.get("getFleet", "/v1/scaling/{fleet}", "Retrieve a fleet.", Fleet)
DECISIONS = named.get(
    "listDecisions",
    "/v1/scaling/{fleet}/decisions",
    "List the decisions about a fleet, newest first.",
    Decisions,
    query=PageQuery,
)
WANTED = named.get(
    "getWanted",
    "/v1/scaling/{fleet}/wanted",
    "Retrieve the wanted number of workers, as KEDA's metrics-api scaler reads it.",
    Wanted,
    errors=(FleetNotWatched,),
)
GET_PROFILE = named.get(
    "getFleetProfile",
    "/v1/scaling/{fleet}/profile",
    "Retrieve the settings of a fleet's profile: overrides, and the values in force.",
    FleetProfile,
)
CHANGE_PROFILE = named.patch(
    "changeFleetProfile",
    "/v1/scaling/{fleet}/profile",
    "Override some settings of a fleet's profile; the others keep their values.",
    FleetProfile,
    request=ProfileOverrides,
    is_partial=True,
    example={"backlog_goal_s": 60, "samples_needed": 3},
)
RESET_PROFILE = named.delete(
    "resetFleetProfile",
    "/v1/scaling/{fleet}/profile",
    "Delete all overrides of a fleet's profile: the fleets file applies again.",
    FleetProfile,
    is_idempotent=True,
)
