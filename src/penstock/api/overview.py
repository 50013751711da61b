"""What operators check first: stats, metrics, problems and health."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Self

import msgspec

from penstock.api.operation import (
    AnswerRecord,
    Instant,
    Limit,
    Operation,
    QueryRecord,
    ToInstant,
    about,
    filtered,
    get,
)
from penstock.api.queues import Counts, Totals
from penstock.domain.errors import StoreUnavailable
from penstock.domain.queue import problem
from penstock.domain.queue.problem import Problem, QueueSnapshot, TransactionKind
from penstock.domain.store import damage as stored


class Stats(AnswerRecord, frozen=True):
    version: Annotated[str, about("The version of this server.")]
    backend: Annotated[str, about("The store behind this node: sqlite, postgres or mariadb.")]
    queues: Annotated[int, about("How many queues there are.")]
    waiting_claims: Annotated[int, about("How many claims are waiting for a message.")]
    now: Annotated[Instant, about("The current time of the server.")]
    counts: Annotated[Counts, about("The number of messages now, by state.")]
    totals: Annotated[Totals, about("Totals over the lifetime of the queues.")]


class QueueProblems(AnswerRecord, frozen=True):
    queue: Annotated[str, about("The queue's name.")]
    problems: Annotated[list[Problem], about("The problems of the queue, the worst first.")]
    counts: Annotated[Counts, about("The number of messages now, by state.")]
    oldest_ready_at: Annotated[
        Instant | None,
        about("When the message at the front became claimable. Null if none can be claimed."),
    ]
    is_paused: Annotated[bool, about("True while an operator has stopped claims.")]
    held_by: Annotated[
        str | None, about("The hash of the circuit that holds the queue. Null if none does.")
    ]

    @classmethod
    def of(cls, snapshot: QueueSnapshot, problems: Sequence[Problem], instant: ToInstant) -> Self:
        return cls.copy_of(
            snapshot,
            instant,
            queue=snapshot.queue.name,
            problems=list(problems),
            counts=Counts.copy_of(snapshot.counts),
            is_paused=snapshot.queue.is_paused,
            held_by=snapshot.queue.held_by,
        )


class HangingRoute(AnswerRecord, frozen=True):
    route: Annotated[str, about("The route's pattern.")]
    endpoint: Annotated[
        str | None, about("The endpoint of the route. Null if the route was removed.")
    ]
    deliveries: Annotated[
        int, about("How many deliveries have had no response for 10 seconds or longer.")
    ]
    since: Annotated[Instant, about("When the oldest of these attempts began.")]

    @classmethod
    def of(
        cls,
        hanging: problem.HangingRoute,
        endpoint: str | None,
        instant: ToInstant,
    ) -> Self:
        return cls.copy_of(hanging, instant, route=hanging.pattern, endpoint=endpoint)


class OldTransaction(AnswerRecord, frozen=True):
    kind: Annotated[
        TransactionKind,
        about(
            "A session, a standby that reports its queries, a prepared transaction "
            "or a replication slot."
        ),
    ]
    pid: Annotated[int | None, about("The id of the PostgreSQL process. Null if it has none.")]
    name: Annotated[
        str | None, about("The name of the prepared transaction or slot. Null if it has none.")
    ]
    application: Annotated[
        str | None, about("The `application_name` of the session. Null if unknown.")
    ]
    user: Annotated[str | None, about("The PostgreSQL user. Null if unknown.")]
    since: Annotated[Instant | None, about("When the transaction began. Null if unknown.")]
    transactions: Annotated[int, about("How many transactions the server has begun since.")]
    state: Annotated[
        str | None,
        about("The state of the session, such as `idle in transaction`. Null if unknown."),
    ]
    query_since: Annotated[
        Instant | None,
        about("When the session's current or last statement began. Null if unknown."),
    ]


class BloatedTable(AnswerRecord, frozen=True):
    table: Annotated[str, about("The name of the table.")]
    rows: Annotated[int, about("About how many rows it has.")]
    dead_rows: Annotated[int, about("About how many deleted rows vacuum has not removed yet.")]
    vacuumed_at: Annotated[Instant | None, about("When it was last vacuumed. Null if never.")]


class DamagedPage(AnswerRecord, frozen=True):
    page: Annotated[int, about("The number of the page in the database file.")]
    table: Annotated[str | None, about("The table it belongs to. Null if unknown.")]
    index: Annotated[
        str | None, about("The index it belongs to. Null if it holds rows, or if unknown.")
    ]
    queues: Annotated[list[str], about("The queues known to have messages that may be on it.")]
    text: Annotated[str, about("A description in plain English.")]


class Damage(AnswerRecord, frozen=True):
    text: Annotated[str, about("A description in plain English.")]
    pages: Annotated[
        list[DamagedPage],
        about("The damaged pages. Empty while the server is still searching for them."),
    ]

    @classmethod
    def of(cls, damage: stored.Damage) -> Self:
        pages = [
            DamagedPage.copy_of(page, page=page.page_no, queues=list(page.queues))
            for page in damage.pages
        ]
        return cls(text=damage.text, pages=pages)


class Problems(AnswerRecord, frozen=True):
    problems: Annotated[list[QueueProblems], about("Queues with problems, the worst first.")]
    is_cut: Annotated[bool, about("True if more queues have problems.")]
    queues_by_problem: Annotated[
        dict[Problem, int], about("How many queues have each problem, also those not listed.")
    ] = msgspec.field(default_factory=dict)
    hanging_routes: Annotated[
        tuple[HangingRoute, ...],
        about("Routes whose endpoint does not respond, those with the most deliveries first."),
    ] = ()
    old_transactions: Annotated[
        tuple[OldTransaction, ...],
        about(
            "On PostgreSQL: transactions that have been open for a minute or longer and keep "
            "vacuum from removing deleted rows, which slows claims; the oldest first."
        ),
    ] = ()
    bloated_tables: Annotated[
        tuple[BloatedTable, ...],
        about("On PostgreSQL: tables with 500,000 dead rows or more, those with the most first."),
    ] = ()
    notification_queue: Annotated[
        float | None,
        about(
            "On PostgreSQL: how full the queue of notifications is, if it is half full or more "
            "(1 is full); a session that listens and does not read fills it."
        ),
    ] = None
    damage: Annotated[
        Damage | None,
        about("Pages of the store that requests could not read. Null if there are none."),
    ] = None


class ListProblems(QueryRecord):
    limit: Limit = 100


class Part(AnswerRecord, frozen=True):
    """A part of the node that does not work."""

    name: Annotated[str, about("The part's name.")]
    state: Annotated[
        str,
        about(
            "failed: it raised an error and is being restarted; stuck: it has work and does not "
            "finish any of it."
        ),
    ]
    message: Annotated[str, about("What went wrong, in plain English.")]


class Health(AnswerRecord, frozen=True, omit_defaults=True):
    status: Annotated[str, about("ok or failing.")]
    version: Annotated[str, about("The version of this server.")]
    parts: Annotated[
        tuple[Part, ...],
        about("Parts of the process that do not work. Absent if all of them work."),
    ] = ()


class Readiness(AnswerRecord, frozen=True, omit_defaults=True):
    status: Annotated[str, about("ready or degraded.")]
    reason: Annotated[str | None, about("Why it is degraded.")] = None


STATS = filtered.get(
    "getStats",
    "/v1/stats",
    "Retrieve counts over all queues that the key is for.",
    Stats,
)
METRICS: Operation[None] = filtered.get(
    "getMetrics",
    "/metrics",
    "Retrieve metrics in Prometheus' text format.",
    media="text/plain; version=0.0.4",
)
PROBLEMS = filtered.get(
    "listProblems",
    "/v1/problems",
    "List queues with problems, the worst first, with hanging routes and old transactions.",
    Problems,
    query=ListProblems,
)
OPENAPI: Operation[None] = get(
    "getOpenApi",
    "/v1/openapi.json",
    "Retrieve this document. `/docs` renders it for people.",
    role=None,
)
ALIVE = get(
    "isAlive",
    "/healthz",
    "Check that every part of the process works. Returns 503 with the parts that do not.",
    Health,
    role=None,
)
READY = get(
    "isReady",
    "/readyz",
    "Check that the store accepts writes.",
    Readiness,
    role=None,
    errors=(StoreUnavailable,),
)
