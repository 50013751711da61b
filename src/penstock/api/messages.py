"""Messages: look up by id, and browse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Self

from msgspec import Meta

from penstock.api.operation import (
    AnswerRecord,
    Cursor,
    DurationMs,
    Id,
    Instant,
    InstantOrText,
    Json,
    Limit,
    Next,
    Operation,
    Positive,
    QueryRecord,
    about,
)
from penstock.domain.access.api_key import Role, Scope
from penstock.domain.message import lifecycle
from penstock.domain.message.history import Ending
from penstock.domain.message.lease import deadline
from penstock.domain.message.lifecycle import Content, State
from penstock.domain.queue.queue import DedupUntil


class Message(AnswerRecord, frozen=True, omit_defaults=True):
    """A message: live, claimed or from history; fields without a value are left out."""

    id: Annotated[Id, about("The id of the message.")]
    queue: Annotated[str, about("The name of its queue.")]
    state: Annotated[State, about("The state of the message.")]
    attempts: Annotated[int, about("How many claims counted as attempts.")]
    sent_at: Annotated[Instant, about("When it was sent.")]
    body: Annotated[Json, about("Any JSON value.")] = None
    receipt: Annotated[
        str | None, about("Proves the lease. Every act on the lease requires it.")
    ] = None
    lease_no: Annotated[int, about("The number of its lease; it grows with each claim.")] = 0
    leased_until: Annotated[Instant | None, about("When the lease expires.")] = None
    due_at: Annotated[Instant | None, about("When it is due: from then on it can be claimed.")] = (
        None
    )
    attributes: Annotated[
        dict[str, str] | None, about("Strings sent along with the body, by name.")
    ] = None
    kind: Annotated[str | None, about("Selects the handler in the worker.")] = None
    entity_id: Annotated[
        str | None, about("The id of the thing the message is about, for searches.")
    ] = None
    tags: Annotated[tuple[str, ...], about("Up to two tags, for searches.")] = ()
    group: Annotated[
        str | None,
        about("In a queue ordered by group, messages of a group are handled one at a time."),
    ] = None
    is_blocked: Annotated[
        bool,
        about(
            "True if an earlier message of its group is not finished, or its group is at its limit."
        ),
    ] = False
    priority: Annotated[int, about("Messages with a smaller number are claimed first.")] = 0
    dedup_key: Annotated[
        str | None,
        about("A second message with this key is not sent within the deduplication window."),
    ] = None
    expires_at: Annotated[
        Instant | None, about("It is cancelled if it is still unclaimed at this instant.")
    ] = None
    max_attempts: Annotated[Positive | None, about("Overrides the queue's `max_attempts`.")] = None
    failures: Annotated[int, about("How many attempts failed.")] = 0
    trace: Annotated[str | None, about("Trace context, passed on unchanged.")] = None
    first_leased_at: Annotated[Instant | None, about("When it was first claimed.")] = None
    leased_at: Annotated[Instant | None, about("When it was last claimed.")] = None
    leased_by: Annotated[str | None, about("The worker that last claimed it.")] = None
    last_error: Annotated[str | None, about("The error of the last failed attempt.")] = None
    reason: Annotated[str | None, about("Why it was buried or cancelled.")] = None
    dead_from: Annotated[
        str | None, about("For a message in a dead-letter queue: the queue it died in.")
    ] = None
    finished_at: Annotated[
        Instant | None, about("When it was completed, died or was cancelled.")
    ] = None
    size: Annotated[int, about("The size of the body in bytes.")] = 0
    timeout_ms: Annotated[
        DurationMs | None,
        about("How long an attempt may take. Null: as long as its lease is extended."),
    ] = None
    retries_timeouts: Annotated[
        bool, about("Retry after a timeout. False: a timeout is final, and the message dies.")
    ] = False
    started_at: Annotated[
        Instant | None, about("When the lease holder reported that it started work.")
    ] = None
    deadline_at: Annotated[
        Instant | None,
        about("When this attempt times out. The lease cannot be extended beyond it."),
    ] = None
    crashes: Annotated[int, about("How many workers crashed while they ran it.")] = 0
    dedup_until: Annotated[
        DedupUntil | None,
        about("How long its dedup key blocks others. Null: for the deduplication window."),
    ] = None
    progress: Annotated[
        Json,
        about("The last progress reported in this attempt: any JSON value."),
    ] = None
    route: Annotated[
        str | None, about("Workers ask the circuit of this route before they run it.")
    ] = None

    # By position, in the order of the fields: 38 keywords cost more than the rest of a claim.

    @classmethod
    def of(
        cls,
        queue: str,
        m: lifecycle.Message,
        content: Content | None,
        instant: Callable[[int], Instant],
        json_value: Callable[[str], Any],
        receipt: str | None = None,
        dead_from: str | None = None,
    ) -> Self:
        """Build the record of a live message; `receipt`: of one that was claimed just now."""
        is_leased = m.state is State.LEASED
        due_at = instant(m.due_at)
        end = deadline(m) if is_leased and m.timeout_ms else None
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
        instant: Callable[[int], Instant],
        json_value: Callable[[str], Any],
    ) -> Self:
        first, last = ending.first_leased_at, ending.leased_at
        return cls(
            id=ending.id,
            queue=ending.queue,
            state=ending.outcome,
            attempts=ending.attempts,
            sent_at=instant(ending.sent_at),
            body=None if content is None else json_value(content.body),
            attributes=None if content is None else content.attributes,
            kind=ending.kind,
            entity_id=ending.entity_id,
            tags=tags_of(ending.tag1, ending.tag2),
            group=ending.group,
            priority=ending.priority,
            failures=ending.failures,
            trace=None if content is None else content.trace,
            first_leased_at=None if first is None else instant(first),
            leased_at=None if last is None else instant(last),
            leased_by=ending.leased_by,
            last_error=ending.last_error,
            reason=ending.reason,
            finished_at=instant(ending.finished_at),
            size=ending.size,
            crashes=ending.crashes,
            route=ending.route,
        )


class Page(AnswerRecord, frozen=True):
    messages: Annotated[list[Message], about("The messages.")]
    next: Next


class Acted(AnswerRecord, frozen=True):
    """A message after an act was applied to it."""

    id: Annotated[Id, about("The id of the message.")]
    state: Annotated[State, about("The state of the message.")]
    due_at: Annotated[Instant, about("When it is due: from then on it can be claimed.")]


_STATES = {"enum": ["ready", "waiting", "leased", "dead"]}


class Browse(QueryRecord):
    state: Annotated[
        str,
        Meta(
            description="The state of the messages.",
            examples=["waiting"],
            extra_json_schema=_STATES,
        ),
    ] = "ready"
    kind: Annotated[str | None, about("Only messages of this kind.")] = None
    tag: Annotated[str | None, about("Only messages with this tag.")] = None
    group: Annotated[str | None, about("Only messages of this group.")] = None
    entity_id: Annotated[str | None, about("Only messages with this `entity_id`.")] = None
    sent_from: Annotated[
        InstantOrText | None, about("Only messages sent at this instant or later.")
    ] = None
    sent_before: Annotated[
        InstantOrText | None, about("Only messages sent before this instant.")
    ] = None
    limit: Limit = 100
    cursor: Cursor = None


BROWSE = Operation(
    name="browseMessages",
    method="GET",
    path="/v1/queues/{queue}/messages",
    summary="List the messages of a queue in one state, without claiming them.",
    role=Role.READ,
    query=Browse,
    answer=Page,
)
GET = Operation(
    name="getMessage",
    method="GET",
    path="/v1/messages/{id}",
    summary="Retrieve a message, live or from history.",
    role=Role.READ,
    scope=Scope.NAMED,
    answer=Message,
)


def tags_of(*tags: str | None) -> tuple[str, ...]:
    return tuple([tag for tag in tags if tag is not None])
