"""Counters over time, for graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Self

import msgspec
from msgspec import Meta

from penstock.api.operation import (
    AnswerRecord,
    DurationMs,
    Instant,
    InstantIn,
    Operation,
    QueryRecord,
    about,
)
from penstock.api.queues import Totals
from penstock.domain.access.api_key import Role, Scope
from penstock.domain.limits import MINUTE
from penstock.domain.queue import minute_counters


class Point(AnswerRecord, frozen=True, omit_defaults=True):
    """One step of a graph; times are left out where no message was done."""

    at: Annotated[Instant, about("When the step begins.")]
    waiting: Annotated[int, about("How many were not due yet at its end.")]
    ready: Annotated[int, about("How many could be claimed at its end.")]
    leased: Annotated[int, about("How many were leased at its end.")]
    dead: Annotated[int, about("How many were dead at its end.")]
    most_ready: Annotated[int, about("The highest number that could be claimed.")]
    happened: Annotated[Totals, about("What happened in this step.")]
    oldest_ready_at: Annotated[
        Instant | None,
        about("Since when the message at the front could be claimed, at the step's end."),
    ] = None
    wait_p50_ms: Annotated[
        DurationMs | None,
        about("Median time from sending to the last claim: the mean of the minutes."),
    ] = None
    wait_p95_ms: Annotated[
        DurationMs | None, about("95th percentile of that time: the highest of the minutes.")
    ] = None
    work_p50_ms: Annotated[
        DurationMs | None,
        about("Median time from the last claim to completion: the mean of the minutes."),
    ] = None
    work_p95_ms: Annotated[
        DurationMs | None, about("95th percentile of that time: the highest of the minutes.")
    ] = None

    @classmethod
    def of(cls, point: minute_counters.Point, instant: Callable[[int], Instant]) -> Self:
        oldest_at, happened = point.oldest_ready_at, point.happened
        return cls(
            at=instant(point.at),
            waiting=point.waiting,
            ready=point.ready,
            leased=point.leased,
            dead=point.dead,
            most_ready=point.most_ready,
            happened=Totals(
                sent=happened["sent_total"],
                done=happened["done_total"],
                dead=happened["dead_total"],
                cancelled=happened["cancelled_total"],
                failed=happened["failed_total"],
                expired_leases=happened["expired_total"],
                claimed=happened["claimed_total"],
            ),
            oldest_ready_at=None if oldest_at is None else instant(oldest_at),
            **msgspec.structs.asdict(point.latency),
        )


class Graph(AnswerRecord, frozen=True):
    from_: Annotated[Instant, about("When the first step begins.")] = msgspec.field(name="from")
    to: Annotated[Instant, about("Until when there is data.")]
    step_ms: Annotated[DurationMs, about("How long each step is.")]
    points: Annotated[list[Point], about("One per step, from the first that there is data for.")]


class GetSamples(QueryRecord):
    from_: Annotated[InstantIn | None, about("The start; without it, an hour before the end.")] = (
        msgspec.field(default=None, name="from")
    )
    to: Annotated[InstantIn | None, about("The end; without it, now.")] = None
    step_ms: Annotated[
        Annotated[int, Meta(ge=MINUTE, multiple_of=MINUTE)] | None,
        about(
            "How long each step is: a multiple of 60000; without it, the shortest that gives "
            "at most 500 steps."
        ),
    ] = None


SAMPLES = Operation(
    name="getSamples",
    method="GET",
    path="/v1/samples",
    summary="Retrieve the counters of all queues together over time, for graphs.",
    role=Role.READ,
    scope=Scope.ALL,
    query=GetSamples,
    answer=Graph,
)
QUEUE_SAMPLES = Operation(
    name="getQueueSamples",
    method="GET",
    path="/v1/queues/{queue}/samples",
    summary="Retrieve the counters of a queue over time, for graphs.",
    role=Role.READ,
    query=GetSamples,
    answer=Graph,
)
