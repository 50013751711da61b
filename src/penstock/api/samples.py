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
    """One step of a graph; latencies are absent if no message was done."""

    at: Annotated[Instant, about("The start of the step.")]
    waiting: Annotated[int, about("How many messages were not due yet at its end.")]
    ready: Annotated[int, about("How many messages could be claimed at its end.")]
    leased: Annotated[int, about("How many messages were leased at its end.")]
    dead: Annotated[int, about("How many messages were dead at its end.")]
    most_ready: Annotated[int, about("The highest number of claimable messages during the step.")]
    happened: Annotated[Totals, about("Counts of what happened during the step.")]
    oldest_ready_at: Annotated[
        Instant | None,
        about("When the message at the front at the step's end became claimable."),
    ] = None
    wait_p50_ms: Annotated[
        DurationMs | None,
        about("Median time from send to last claim, averaged over the minutes of the step."),
    ] = None
    wait_p95_ms: Annotated[
        DurationMs | None,
        about("95th percentile of that time, the highest of the minutes of the step."),
    ] = None
    work_p50_ms: Annotated[
        DurationMs | None,
        about("Median time from last claim to completion, averaged over the minutes of the step."),
    ] = None
    work_p95_ms: Annotated[
        DurationMs | None,
        about("95th percentile of that time, the highest of the minutes of the step."),
    ] = None

    @classmethod
    def of(cls, point: minute_counters.GraphPoint, instant: Callable[[int], Instant]) -> Self:
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
    from_: Annotated[Instant, about("The start of the first step.")] = msgspec.field(name="from")
    to: Annotated[Instant, about("The end of the data.")]
    step_ms: Annotated[DurationMs, about("The length of each step.")]
    points: Annotated[list[Point], about("One point per step, from the first step that has data.")]


class GetSamples(QueryRecord):
    from_: Annotated[InstantIn | None, about("The start. Defaults to an hour before the end.")] = (
        msgspec.field(default=None, name="from")
    )
    to: Annotated[InstantIn | None, about("The end. Defaults to now.")] = None
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
