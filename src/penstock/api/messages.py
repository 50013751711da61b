"""Messages: looked up by id, and browsed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Self

from msgspec import Meta

from penstock.api.operation import (
    AnswerRecord,
    DurationMs,
    Id,
    Instant,
    InstantOrText,
    Json,
    Limit,
    Operation,
    Positive,
    QueryRecord,
    about,
)
from penstock.domain.access.api_key import Role, Scope
from penstock.domain.message import lifecycle
from penstock.domain.message.deadline import deadline
from penstock.domain.message.history import Ending
from penstock.domain.message.lifecycle import Content, State
from penstock.domain.queue.queue import DedupUntil


class Message(AnswerRecord, frozen=True, omit_defaults=True):
    """A message: live, claimed or from history; fields without a value are left out."""

    id: Annotated[Id, about("The id of the message.")]
    queue: Annotated[str, about("The name of its queue.")]
    state: Annotated[State, about("Where it is in its life cycle.")]
    attempts: Annotated[int, about("Claims that count.")]
    sent_at: Annotated[Instant, about("When it was sent.")]
    body: Annotated[Json, about("Any JSON value.")] = None
    receipt: Annotated[str | None, about("Proves the lease; every act on the lease needs it.")] = (
        None
    )
    lease_no: Annotated[int, about("Grows with each claim.")] = 0
    leased_until: Annotated[Instant | None, about("When the lease expires.")] = None
    due_at: Annotated[Instant | None, about("When it may be claimed.")] = None
    attributes: Annotated[dict[str, str] | None, about("Texts beside the body.")] = None
    kind: Annotated[str | None, about("The name by which a worker chooses the handler.")] = None
    entity_id: Annotated[str | None, about("What the message is about, for searching.")] = None
    tags: Annotated[tuple[str, ...], about("Up to two texts, for searching.")] = ()
    group: Annotated[
        str | None,
        about("In a queue ordered by group, messages of one group are handled one at a time."),
    ] = None
    is_blocked: Annotated[
        bool,
        about("An earlier message of its group is not finished, or its group is at its limit."),
    ] = False
    priority: Annotated[int, about("A smaller number is claimed first.")] = 0
    dedup_key: Annotated[
        str | None, about("A second message with this key within the window is not sent again.")
    ] = None
    expires_at: Annotated[
        Instant | None, about("When it becomes useless: it is cancelled if unclaimed by then.")
    ] = None
    max_attempts: Annotated[Positive | None, about("Overrides the limit of the queue.")] = None
    failures: Annotated[int, about("Attempts that failed.")] = 0
    trace: Annotated[str | None, about("Trace context, handed on unchanged.")] = None
    first_leased_at: Annotated[Instant | None, about("When it was claimed first.")] = None
    leased_at: Annotated[Instant | None, about("When it was claimed.")] = None
    leased_by: Annotated[str | None, about("Who claimed it.")] = None
    last_error: Annotated[str | None, about("The error of the last failed attempt.")] = None
    reason: Annotated[str | None, about("Why it was given up or cancelled.")] = None
    dead_from: Annotated[
        str | None, about("Of a message in a dead-letter queue: the queue in which it died.")
    ] = None
    finished_at: Annotated[
        Instant | None, about("When it was completed, died or was cancelled.")
    ] = None
    size: Annotated[int, about("Bytes of the body.")] = 0
    timeout_ms: Annotated[
        DurationMs | None,
        about("How long one attempt may take; null: as long as its lease is extended."),
    ] = None
    retries_timeouts: Annotated[
        bool, about("Retry an attempt that timed out; false: the message is dead.")
    ] = False
    started_at: Annotated[
        Instant | None, about("When the lease holder reported that work began.")
    ] = None
    deadline_at: Annotated[
        Instant | None, about("When this attempt times out: it cannot be extended any more.")
    ] = None
    crashes: Annotated[int, about("Workers that crashed while they ran it.")] = 0
    dedup_until: Annotated[
        DedupUntil | None, about("How long its dedup key is held; null: for the queue's window.")
    ] = None
    progress: Annotated[
        Json,
        about("Progress reported by the lease holder: any JSON value, until the next attempt."),
    ] = None
    route: Annotated[
        str | None, about("Workers ask the circuit of this name before they run it.")
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
        """A live message; `receipt` of one that was claimed just now."""
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
    next: Annotated[str | None, about("Cursor of the next page; null: this is the last.")]


class Acted(AnswerRecord, frozen=True):
    """A message after an act."""

    id: Annotated[Id, about("The id of the message.")]
    state: Annotated[State, about("Where it is in its life cycle.")]
    due_at: Annotated[Instant, about("When it may be claimed.")]


_STATES = {"enum": ["ready", "waiting", "leased", "dead"]}


class Browse(QueryRecord):
    state: Annotated[
        str,
        Meta(
            description="Messages in this state.", examples=["waiting"], extra_json_schema=_STATES
        ),
    ] = "ready"
    kind: Annotated[str | None, about("Only messages of this kind.")] = None
    tag: Annotated[str | None, about("Only messages with this tag.")] = None
    group: Annotated[str | None, about("Only messages of this group.")] = None
    entity_id: Annotated[str | None, about("Only messages about this.")] = None
    sent_from: Annotated[
        InstantOrText | None, about("Only messages sent at this instant or later.")
    ] = None
    sent_before: Annotated[
        InstantOrText | None, about("Only messages sent before this instant.")
    ] = None
    limit: Limit = 100
    cursor: Annotated[
        str | None, about("`next` of the page before; without it the first page.")
    ] = None


BROWSE = Operation(
    name="browseMessages",
    method="GET",
    path="/v1/queues/{queue}/messages",
    summary="Look at messages in one state (ready, waiting, leased, dead); changes nothing.",
    role=Role.READ,
    query=Browse,
    answer=Page,
)
GET = Operation(
    name="getMessage",
    method="GET",
    path="/v1/messages/{id}",
    summary="One message, live or from history.",
    role=Role.READ,
    scope=Scope.NAMED,
    answer=Message,
)


def tags_of(*tags: str | None) -> tuple[str, ...]:
    return tuple([tag for tag in tags if tag is not None])
