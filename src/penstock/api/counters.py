"""The counters of queues: over time for graphs, and live, as one event per second."""

from __future__ import annotations

from typing import Annotated, Self

import msgspec
from msgspec import Meta
from msgspec.structs import asdict

from penstock.api.operation import (
    AnswerRecord,
    DurationMs,
    Instant,
    InstantIn,
    Operation,
    QueryRecord,
    ToInstant,
    about,
    everywhere,
    filtered,
    get,
)
from penstock.api.queues import Counts, Totals
from penstock.domain.errors import TooManyWaiting
from penstock.domain.limits import MINUTE
from penstock.domain.queue import minute_counters
from penstock.domain.queue import queue as domain_counts

MAX_EVENTS = 100_000


class Rates(AnswerRecord, frozen=True):
    """How many per second."""

    sent: float = 0
    done: float = 0
    dead: float = 0
    cancelled: float = 0
    failed: float = 0
    expired_leases: float = 0
    claimed: float = 0


class LiveQueue(AnswerRecord, frozen=True, omit_defaults=True):
    name: str
    counts: Counts
    totals: Totals
    rates: Rates
    is_paused: bool
    held_by: str | None = None


class Live(AnswerRecord, frozen=True):
    """The data of one event."""

    at: Instant
    workers: Annotated[
        int | None, about("The number of live workers. Null if the key is limited to some queues.")
    ]
    open_circuits: Annotated[
        int | None,
        about(
            "The number of open or half-open circuits. Null if the key is limited to some queues."
        ),
    ]
    queues: Annotated[list[LiveQueue], about("The queues that have changed since the last event.")]
    is_cut: Annotated[bool, about("True if more queues have changed than are listed.")]
    counts: Annotated[
        Counts | None, about("For all queues. Null if the key is limited to some queues.")
    ] = None
    totals: Annotated[
        Totals | None, about("For all queues. Null if the key is limited to some queues.")
    ] = None
    rates: Annotated[
        Rates | None, about("For all queues. Null if the key is limited to some queues.")
    ] = None


class WatchLive(QueryRecord):
    events: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_EVENTS, examples=[1])] | None,
        about("End the stream after this many events. By default it does not end."),
    ] = None


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
        about("Median time from send to first claim, averaged over the minutes of the step."),
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
    def of(cls, point: minute_counters.GraphPoint, instant: ToInstant) -> Self:
        happened = Totals.of(domain_counts.Counts(**point.happened))
        return cls.copy_of(point, instant, happened=happened, **asdict(point.latency))


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


SAMPLES = everywhere.get(
    "getSamples",
    "/v1/samples",
    "Retrieve the counters of all queues together over time, for graphs.",
    Graph,
    query=GetSamples,
)
QUEUE_SAMPLES = get(
    "getQueueSamples",
    "/v1/queues/{queue}/samples",
    "Retrieve the counters of a queue over time, for graphs.",
    Graph,
    query=GetSamples,
)
WATCH: Operation[None] = filtered.get(
    "watchLive",
    "/v1/live",
    "Stream changes once a second as server-sent events.",
    query=WatchLive,
    media="text/event-stream",
    errors=(TooManyWaiting,),
)
