"""History: how messages ended, and the attempts that did not finish them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Self

import msgspec
from msgspec import Meta

from penstock.api.operation import (
    AnswerRecord,
    Cursor,
    Id,
    Instant,
    InstantIn,
    Limit,
    Next,
    Operation,
    QueryRecord,
    QueueName,
    about,
)
from penstock.domain.access.api_key import Role, Scope
from penstock.domain.message import history as domain
from penstock.domain.message.history import AttemptOutcome
from penstock.domain.message.lifecycle import State

_OUTCOMES = [state.value for state in (State.DONE, State.DEAD, State.CANCELLED)]


class Ending(AnswerRecord, frozen=True, omit_defaults=True):
    """How a message ended; fields without a value are left out."""

    id: Annotated[Id, about("The id of the message.")]
    queue: Annotated[str, about("The queue in which it ended.")]
    outcome: Annotated[State, about("How it ended: done, dead or cancelled.")]
    sent_at: Annotated[Instant, about("When it was sent.")]
    finished_at: Annotated[Instant, about("When it was done, died or was cancelled.")]
    attempts: Annotated[int, about("How many claims counted as attempts.")]
    failures: Annotated[int, about("How many attempts failed.")]
    size: Annotated[int, about("The size of the body in bytes.")]
    reason: Annotated[str | None, about("Why it was buried or cancelled.")] = None
    kind: Annotated[str | None, about("Selects the handler in the worker.")] = None
    entity_id: Annotated[
        str | None, about("The id of the thing the message is about, for searches.")
    ] = None
    tags: Annotated[tuple[str, ...], about("Up to two tags, for searches.")] = ()
    group: Annotated[str | None, about("The group it belonged to.")] = None
    priority: Annotated[int, about("Messages with a smaller number were claimed first.")] = 0
    first_leased_at: Annotated[Instant | None, about("When it was first claimed.")] = None
    leased_at: Annotated[Instant | None, about("When it was last claimed.")] = None
    leased_by: Annotated[str | None, about("The worker that last claimed it.")] = None
    last_error: Annotated[str | None, about("The error of the last failed attempt.")] = None
    route: Annotated[str | None, about("The route whose circuit workers consulted.")] = None
    crashes: Annotated[int, about("How many workers crashed while they ran it.")] = 0

    @classmethod
    def of(cls, ending: domain.Ending, instant: Callable[[int], Instant]) -> Self:
        e = ending
        return cls(
            id=e.id,
            queue=e.queue,
            outcome=e.outcome,
            sent_at=instant(e.sent_at),
            finished_at=instant(e.finished_at),
            attempts=e.attempts,
            failures=e.failures,
            size=e.size,
            reason=e.reason,
            kind=e.kind,
            entity_id=e.entity_id,
            tags=tuple(tag for tag in (e.tag1, e.tag2) if tag is not None),
            group=e.group,
            priority=e.priority,
            first_leased_at=None if e.first_leased_at is None else instant(e.first_leased_at),
            leased_at=None if e.leased_at is None else instant(e.leased_at),
            leased_by=e.leased_by,
            last_error=e.last_error,
            route=e.route,
            crashes=e.crashes,
        )


class Attempt(AnswerRecord, frozen=True, omit_defaults=True):
    """A lease that ended without finishing its message; fields without a value are left out."""

    lease_no: Annotated[int, about("The number of the lease; it grows with each claim.")]
    outcome: Annotated[AttemptOutcome, about("How the lease ended.")]
    ended_at: Annotated[Instant, about("When the lease ended.")]
    leased_at: Annotated[Instant | None, about("When the message was claimed.")] = None
    leased_by: Annotated[str | None, about("The worker that claimed it.")] = None
    error: Annotated[str | None, about("What went wrong.")] = None

    @classmethod
    def of(cls, attempt: domain.Attempt, instant: Callable[[int], Instant]) -> Self:
        return cls(
            lease_no=attempt.lease_no,
            outcome=attempt.outcome,
            ended_at=instant(attempt.ended_at),
            leased_at=None if attempt.leased_at is None else instant(attempt.leased_at),
            leased_by=attempt.leased_by,
            error=attempt.error,
        )


class History(AnswerRecord, frozen=True):
    endings: Annotated[list[Ending], about("How messages ended, newest first.")]
    next: Next


class Past(AnswerRecord, frozen=True):
    endings: Annotated[list[Ending], about("How the message ended, newest first.")]
    attempts: Annotated[list[Attempt], about("Leases that ended without finishing the message.")]


class SearchHistory(QueryRecord):
    queue: Annotated[
        QueueName | None, Meta(description="Only messages that ended here.", examples=["mail"])
    ] = None
    kind: Annotated[str | None, about("Only messages of this kind.")] = None
    tag: Annotated[str | None, about("Only messages with this tag.")] = None
    entity_id: Annotated[str | None, about("Only messages with this `entity_id`.")] = None
    outcome: Annotated[
        str | None,
        Meta(
            description="Only messages that ended in this state.",
            extra_json_schema={"enum": _OUTCOMES},
        ),
    ] = None
    from_: Annotated[
        InstantIn | None, about("Only messages that ended at this instant or later.")
    ] = msgspec.field(default=None, name="from")
    to: Annotated[InstantIn | None, about("Only messages that ended before this instant.")] = None
    limit: Limit = 100
    cursor: Cursor = None


SEARCH = Operation(
    name="searchHistory",
    method="GET",
    path="/v1/history",
    summary="Search finished messages, newest first.",
    role=Role.READ,
    scope=Scope.NAMED,
    query=SearchHistory,
    answer=History,
)
GET = Operation(
    name="getHistory",
    method="GET",
    path="/v1/history/{id}",
    summary="Retrieve the endings and the attempts of a message.",
    role=Role.READ,
    scope=Scope.NAMED,
    answer=Past,
)
