"""Queues: their settings, their counts, and acts of operators on them."""

from __future__ import annotations

from typing import Annotated, Self

from msgspec import UNSET, Meta, UnsetType

from penstock.api.operation import (
    AnswerRecord,
    Cursor,
    Instant,
    Limit,
    Next,
    Operation,
    Positive,
    QueryRecord,
    RequestRecord,
    ToInstant,
    about,
    delete,
    filtered,
    get,
    patch,
    post,
    put,
)
from penstock.domain.errors import QueueExists, QueueNotEmpty
from penstock.domain.message.lifecycle import State
from penstock.domain.queue import queue as domain_queue
from penstock.domain.queue.listing import QueueSort
from penstock.domain.queue.problem import Problem
from penstock.domain.queue.queue import QueueSettings


class Counts(AnswerRecord, frozen=True):
    """Messages that exist now."""

    waiting: Annotated[int, about("The number of messages that are not due yet.")]
    ready: Annotated[int, about("The number of messages that can be claimed.")]
    leased: Annotated[int, about("The number of leased messages.")]
    dead: Annotated[int, about("The number of dead messages, which wait for a redrive.")]


class Totals(AnswerRecord, frozen=True):
    """Totals over the lifetime of the queue."""

    sent: Annotated[int, about("The number of messages that arrived.")]
    done: Annotated[int, about("The number of completed messages.")]
    dead: Annotated[int, about("The number of messages that died.")]
    cancelled: Annotated[int, about("The number of cancelled messages.")]
    failed: Annotated[int, about("The number of failed attempts.")]
    expired_leases: Annotated[int, about("The number of expired leases.")]
    claimed: Annotated[int, about("The number of messages returned by claims.")]

    @classmethod
    def of(cls, counts: domain_queue.Counts) -> Self:
        return cls(
            sent=counts.sent_total,
            done=counts.done_total,
            dead=counts.dead_total,
            cancelled=counts.cancelled_total,
            failed=counts.failed_total,
            expired_leases=counts.expired_total,
            claimed=counts.claimed_total,
        )


class Queue(AnswerRecord, frozen=True):
    name: Annotated[str, about("The queue's name.")]
    settings: Annotated[QueueSettings, about("The settings of the queue.")]
    is_paused: Annotated[bool, about("True while an operator has stopped claims.")]
    created_at: Annotated[Instant, about("When the queue was created.")]
    counts: Annotated[Counts, about("The number of messages now, by state.")]
    totals: Annotated[Totals, about("Totals over the lifetime of the queue.")]
    oldest_ready_at: Annotated[
        Instant | UnsetType | None,
        about("When the message at the front became claimable. Null if none is. Absent in lists."),
    ] = UNSET
    held_by: Annotated[
        str | UnsetType, about("The hash of the circuit that holds the queue. Absent if none does.")
    ] = UNSET
    note: Annotated[
        str | UnsetType,
        about("After a resume: why claims are still stopped, if they are."),
    ] = UNSET

    @classmethod
    def of(
        cls,
        queue: domain_queue.Queue,
        counts: domain_queue.Counts,
        instant: ToInstant,
        *,
        oldest_ready_at: int | UnsetType | None = UNSET,
        note: str | UnsetType = UNSET,
    ) -> Self:
        return cls.copy_of(
            queue,
            instant,
            counts=Counts.copy_of(counts),
            totals=Totals.of(counts),
            oldest_ready_at=(
                instant(oldest_ready_at) if isinstance(oldest_ready_at, int) else oldest_ready_at
            ),
            held_by=queue.held_by or UNSET,
            note=note,
        )


class Queues(AnswerRecord, frozen=True):
    queues: Annotated[list[Queue], about("The queues, in the requested order.")]
    next: Next


class ListQueues(QueryRecord):
    prefix: Annotated[
        str | None, Meta(description="Only queues whose names begin with this.", examples=["ma"])
    ] = None
    contains: Annotated[
        str | None, about("Only queues whose names contain this, ignoring case.")
    ] = None
    dead_letter_queue: Annotated[
        str | None, about("Only queues whose dead messages go to this queue.")
    ] = None
    problem: Annotated[Problem | None, about("Only queues with this problem.")] = None
    state: Annotated[
        State | None,
        Meta(
            description="Only queues with messages in this state.",
            examples=["dead"],
            extra_json_schema={"enum": ["ready", "waiting", "leased", "dead"]},
        ),
    ] = None
    label: Annotated[
        str | None,
        Meta(description="Only queues with this label: NAME or NAME=VALUE.", examples=["team=a"]),
    ] = None
    sort: Annotated[
        QueueSort | None,
        about("The order: by name, or by a number, the largest first. Defaults to the name."),
    ] = None
    ascending: Annotated[bool, about("With `sort`: the smallest number first.")] = False
    limit: Limit = 100
    cursor: Cursor = None


class RemoveQueue(QueryRecord):
    force: Annotated[
        bool, Meta(description="Remove the queue and all messages in it.", examples=[True])
    ] = False


class Cancelled(AnswerRecord, frozen=True):
    cancelled: Annotated[int, about("How many messages were cancelled.")]


class Redrive(RequestRecord):
    limit: Annotated[
        Positive | None, about("The maximum number of messages to redrive; null: all.")
    ] = None
    to: Annotated[str | None, about("The queue to send them to; null: the queue each died in.")] = (
        None
    )


class Redriven(AnswerRecord, frozen=True):
    redriven: Annotated[int, about("How many messages were redriven.")]


LIST = filtered.get(
    "listQueues",
    "/v1/queues",
    "List queues with their counts, by name or by a number.",
    Queues,
    query=ListQueues,
)
PUT = put(
    "putQueue",
    "/v1/queues/{queue}",
    "Create a queue (201) or replace its settings (200).",
    Queue,
    request=QueueSettings,
    example={"lease_ms": 60_000, "max_attempts": 3},
    status=201,
    also=(200,),
    errors=(QueueExists,),  # with If-None-Match, or when two clients create it at the same time
)
CHANGE = patch(
    "changeQueue",
    "/v1/queues/{queue}",
    "Update some settings of a queue; the others keep their values.",
    Queue,
    request=QueueSettings,
    is_partial=True,
    example={"max_attempts": None},
)
GET = get("getQueue", "/v1/queues/{queue}", "Retrieve a queue with its counts.", Queue)
REMOVE: Operation[None] = delete(
    "removeQueue",
    "/v1/queues/{queue}",
    "Delete a queue. A queue with messages is deleted only with `force=true`.",
    query=RemoveQueue,
    status=204,
    errors=(QueueNotEmpty,),
)
PAUSE = post(
    "pauseQueue",
    "/v1/queues/{queue}/pause",
    "Stop claims on a queue; messages can still be sent to it.",
    Queue,
    is_idempotent=True,
)
RESUME = post(
    "resumeQueue",
    "/v1/queues/{queue}/resume",
    "Allow claims again after a pause. A circuit may still hold the queue.",
    Queue,
    is_idempotent=True,
)
UNHOLD = post(
    "unholdQueue",
    "/v1/queues/{queue}/unhold",
    "End the hold of a circuit on a queue; an operator's pause stays.",
    Queue,
    is_idempotent=True,
)
PURGE = post(
    "purgeQueue",
    "/v1/queues/{queue}/purge",
    "Cancel all messages in a queue. Their leases are lost.",
    Cancelled,
)
REDRIVE = post(
    "redriveQueue",
    "/v1/queues/{queue}/redrive",
    "Send dead messages back to the queues they died in, or to another queue.",
    Redriven,
    request=Redrive,
    example={"limit": 100},
)
