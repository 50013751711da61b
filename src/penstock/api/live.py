"""Live updates: one event per second, while a client listens."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from penstock.api.operation import AnswerRecord, Instant, Operation, QueryRecord, about
from penstock.api.queues import Counts, Totals
from penstock.domain.access.api_key import Role, Scope
from penstock.domain.errors import TooManyWaiting

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


WATCH: Operation[None] = Operation(
    name="watchLive",
    method="GET",
    path="/v1/live",
    summary="Stream changes once a second as server-sent events.",
    role=Role.READ,
    scope=Scope.FILTERED,
    query=WatchLive,
    media="text/event-stream",
    errors=(TooManyWaiting,),
)
