"""Messages: send, look up by id, and browse; and the fields that records of messages share."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Self, TypedDict

import msgspec
from msgspec import Meta

from penstock.api.operation import (
    AnswerRecord,
    DurationMs,
    Id,
    Instant,
    InstantOrMs,
    Json,
    JsonIn,
    Positive,
    RequestRecord,
    ToInstant,
    about,
    named,
    one_of,
    post,
)
from penstock.domain.access.api_key import Role
from penstock.domain.errors import PenstockError, QueueFull
from penstock.domain.message import lifecycle
from penstock.domain.message.history import Ending, tags_of
from penstock.domain.message.lease import deadline
from penstock.domain.message.lifecycle import Content, State
from penstock.domain.queue.queue import DedupUntil

MessageId = Annotated[Id, about("The id of the message.")]
QueueOf = Annotated[str, about("The name of its queue.")]
MessageState = Annotated[State, about("The state of the message.")]
Body = Annotated[Json, about("Any JSON value.")]
Attributes = Annotated[dict[str, str] | None, about("Strings sent along with the body, by name.")]
Kind = Annotated[str | None, about("Selects the handler in the worker.")]
EntityId = Annotated[str | None, about("The id of the thing the message is about, for searches.")]
Tags = Annotated[tuple[str, ...], about("Up to two tags, for searches.")]
Group = Annotated[
    str | None,
    about("In a queue ordered by group, messages of a group are handled one at a time."),
]
Priority = Annotated[int, about("Messages with a smaller number are claimed first.")]
DedupKey = Annotated[
    str | None, about("A second message with this key is not sent within the deduplication window.")
]
DedupKeyUntil = Annotated[
    DedupUntil | None,
    about("How long its dedup key blocks others. Null: for the deduplication window."),
]
MaxAttempts = Annotated[Positive | None, about("Overrides the queue's `max_attempts`.")]
TimeoutMs = Annotated[
    DurationMs | None,
    about("How long an attempt may take. Null: as long as its lease is extended."),
]
RetriesTimeouts = Annotated[
    bool, about("Retry after a timeout. False: a timeout is final, and the message dies.")
]
Route = Annotated[str | None, about("Workers ask the circuit of this route before they run it.")]
Trace = Annotated[str | None, about("Trace context, passed on unchanged.")]
_DUE_AT = about("When it is due: from then on it can be claimed.")
DueAt = Annotated[Instant, _DUE_AT]
NewDueAt = Annotated[InstantOrMs | None, _DUE_AT]
DelayMs = Annotated[DurationMs | None, about("The delay until it is due, in place of `due_at`.")]
IsDuplicate = Annotated[bool, about("True if the dedup key was taken; the id is the first one's.")]
Attempts = Annotated[int, about("How many claims counted as attempts.")]
Failures = Annotated[int, about("How many attempts failed.")]
Crashes = Annotated[int, about("How many workers crashed while they ran it.")]
SentAt = Annotated[Instant, about("When it was sent.")]
LeasedUntil = Annotated[Instant | None, about("When the lease expires.")]
FirstLeasedAt = Annotated[Instant | None, about("When it was first claimed.")]
LeasedAt = Annotated[Instant | None, about("When it was last claimed.")]
LeasedBy = Annotated[str | None, about("The worker that last claimed it.")]
LastError = Annotated[str | None, about("The error of the last failed attempt.")]
ErrorLine = Annotated[
    str | None, about("That error in one line: the exception, and where it was raised.")
]
Preview = Annotated[
    Annotated[int, Meta(ge=1, le=10_000)] | None,
    Meta(
        description="Return only this many characters of each body, as `preview`, and leave out "
        "`attributes` and `last_error`.",
        examples=[100],
    ),
]
EndReason = Annotated[str | None, about("Why it was buried or cancelled.")]
FinishedAt = Annotated[Instant | None, about("When it was completed, died or was cancelled.")]
Size = Annotated[int, about("The size of the body in bytes.")]
ResultValue = Annotated[Json, about("What its worker returned, if that was kept: any JSON value.")]


class MessageOptions(msgspec.Struct, kw_only=True):
    """The fields that a message and the messages of recurring work are sent with."""

    kind: Kind = None
    entity_id: EntityId = None
    tags: Tags = ()
    group: Group = None
    priority: Priority = 0
    dedup_key: DedupKey = None
    expires_in_ms: Annotated[
        DurationMs | None,
        about("The time after which it is cancelled if it is still unclaimed."),
    ] = None
    max_attempts: MaxAttempts = None
    timeout_ms: TimeoutMs = None
    retries_timeouts: RetriesTimeouts = False
    dedup_until: DedupKeyUntil = None
    route: Route = None


class Draft(MessageOptions, RequestRecord):
    """A message to be sent."""

    body: Annotated[JsonIn, about("Any JSON value.")]
    attributes: Attributes = None
    due_at: Annotated[
        InstantOrMs | None,
        about("When it becomes due. Defaults to now plus the queue's `delay_ms`."),
    ] = None
    delay_ms: DelayMs = None
    expires_at: Annotated[
        InstantOrMs | None, about("It is cancelled if it is still unclaimed at this instant.")
    ] = None
    trace: Trace = None
    dedup_window_ms: Annotated[
        DurationMs | None, about("Overrides the queue's `dedup_window_ms`.")
    ] = None


class RunOptions(TypedDict, total=False):
    """The fields of a draft that kinds of jobs can set for all their jobs, as keyword arguments."""

    priority: int  # smaller goes first
    retries_timeouts: bool  # retry an attempt that timed out; otherwise the message is dead
    route: str | None  # the route it calls, for circuits and statistics


class SendOptions(RunOptions, total=False):
    """The fields of a draft except its body, as keyword arguments."""

    attributes: dict[str, str] | None
    kind: str | None
    entity_id: str | None
    tags: tuple[str, ...]
    group: str | None
    due_at: datetime | None
    delay_ms: int | None
    dedup_key: str | None
    expires_at: datetime | None
    expires_in_ms: int | None
    max_attempts: int | None
    trace: str | None
    timeout_ms: int | None
    dedup_until: DedupUntil | None
    dedup_window_ms: int | None


_A_DRAFT = Meta(extra_json_schema={"$ref": "#/components/schemas/Draft"})


class Drafts(RequestRecord):
    """Drafts that are decoded one by one, so that an invalid one does not affect the others."""

    messages: Annotated[
        list[Annotated[msgspec.Raw, _A_DRAFT]], about("The messages. Each has its own result.")
    ]


class Sent(AnswerRecord, frozen=True):
    id: MessageId
    is_duplicate: IsDuplicate = False


class SendResults(AnswerRecord, frozen=True):
    results: Annotated[
        list[Annotated[Any, one_of("Sent", "ErrorAnswer")]],
        about("One result per message, in the same order."),
    ]


SendResult = Sent | PenstockError  # the result of one draft in a batch, as clients return it


class Message(AnswerRecord, frozen=True, omit_defaults=True):
    """A message: live, claimed or from history; fields without a value are left out."""

    id: MessageId
    queue: QueueOf
    state: MessageState
    attempts: Attempts
    sent_at: SentAt
    body: Body = None
    receipt: Annotated[
        str | None, about("Proves the lease. Every act on the lease requires it.")
    ] = None
    lease_no: Annotated[int, about("The number of its lease; it grows with each claim.")] = 0
    leased_until: LeasedUntil = None
    due_at: Annotated[Instant | None, _DUE_AT] = None
    attributes: Attributes = None
    kind: Kind = None
    entity_id: EntityId = None
    tags: Tags = ()
    group: Group = None
    is_blocked: Annotated[
        bool,
        about(
            "True if an earlier message of its group is not finished, or its group is at its limit."
        ),
    ] = False
    priority: Priority = 0
    dedup_key: DedupKey = None
    expires_at: Annotated[
        Instant | None, about("It is cancelled if it is still unclaimed at this instant.")
    ] = None
    max_attempts: MaxAttempts = None
    failures: Failures = 0
    trace: Trace = None
    first_leased_at: FirstLeasedAt = None
    leased_at: LeasedAt = None
    leased_by: LeasedBy = None
    last_error: LastError = None
    reason: EndReason = None
    dead_from: Annotated[
        str | None, about("For a message in a dead-letter queue: the queue it died in.")
    ] = None
    finished_at: FinishedAt = None
    size: Size = 0
    timeout_ms: TimeoutMs = None
    retries_timeouts: RetriesTimeouts = False
    started_at: Annotated[
        Instant | None, about("When the lease holder reported that it started work.")
    ] = None
    deadline_at: Annotated[
        Instant | None,
        about("When this attempt times out. The lease cannot be extended beyond it."),
    ] = None
    crashes: Crashes = 0
    dedup_until: DedupKeyUntil = None
    progress: Annotated[
        Json, about("The last progress reported in this attempt: any JSON value.")
    ] = None
    route: Route = None
    result: ResultValue = None
    flow_id: Annotated[str | None, about("The flow that it is a member of.")] = None
    waits_for: Annotated[int, about("How many members of its flow must end before it is sent.")] = 0
    error_line: ErrorLine = None
    preview: Annotated[
        str | None,
        about("In lists with `preview`: the beginning of the body's JSON, in place of the body."),
    ] = None

    @classmethod
    def of(
        cls,
        queue: str,
        m: lifecycle.Message,
        content: Content | None,
        instant: ToInstant,
        json_value: Callable[[str], Any],
        receipt: str | None = None,
        dead_from: str | None = None,
    ) -> Self:
        """Build the record of a live message; `receipt`: of one that was claimed just now."""
        is_leased = m.state is State.LEASED
        due_at = instant(m.due_at)
        end = deadline(m) if is_leased and m.timeout_ms else None
        # By position, in the order of the fields: 38 keywords cost more than the rest of a claim.
        return cls(
            m.id,
            queue,
            m.state,
            m.attempts,
            instant(m.sent_at),
            None if content is None else json_value(content.body),
            receipt,
            m.lease_no,
            due_at if is_leased else None,
            None if is_leased else due_at,
            None if content is None else content.attributes,
            m.kind,
            m.entity_id,
            () if m.tag1 is None else (m.tag1,) if m.tag2 is None else (m.tag1, m.tag2),
            m.group,
            m.is_blocked,
            m.priority,
            m.dedup_key,
            None if m.expires_at is None else instant(m.expires_at),
            m.max_attempts,
            m.failures,
            None if content is None else content.trace,
            None if m.first_leased_at is None else instant(m.first_leased_at),
            None if m.leased_at is None or receipt is not None else instant(m.leased_at),
            m.leased_by,
            m.last_error,
            m.reason,
            dead_from,
            None,
            m.size,
            m.timeout_ms,
            m.retries_timeouts,
            None if m.started_at is None else instant(m.started_at),
            None if end is None else instant(end),
            m.crashes,
            m.dedup_until,
            None if m.progress is None else json_value(m.progress),
            m.route,
        )

    @classmethod
    def of_ending(
        cls,
        ending: Ending,
        content: Content | None,
        instant: ToInstant,
        json_value: Callable[[str], Any],
        result: str | None = None,
    ) -> Self:
        return cls.copy_of(
            ending,
            instant,
            state=ending.outcome,
            body=None if content is None else json_value(content.body),
            due_at=None,
            attributes=None if content is None else content.attributes,
            tags=tags_of(ending),
            trace=None if content is None else content.trace,
            result=None if result is None else json_value(result),
        )


class Acted(AnswerRecord, frozen=True):
    """A message after an act was applied to it."""

    id: MessageId
    state: MessageState
    due_at: DueAt


SEND = post(
    "sendMessage",
    "/v1/queues/{queue}/messages",
    "Send a message. The response is sent once the message is on disk.",
    Sent,
    role=Role.PRODUCE,
    request=Draft,
    example={"body": {"to": "ada@example.org"}, "delay_ms": 0},
    status=201,
    errors=(QueueFull,),
)
SEND_BATCH = post(
    "sendMessages",
    "/v1/queues/{queue}/messages/batch",
    "Send several messages in one transaction. Each message has its own result.",
    SendResults,
    role=Role.PRODUCE,
    request=Drafts,
    example={"messages": [{"body": "one"}, {"body": "two", "priority": -1}]},
)
GET = named.get(
    "getMessage",
    "/v1/messages/{id}",
    "Retrieve a message, live or from history.",
    Message,
)
