"""History: ends, results and attempts of messages, and facts about other things."""

from __future__ import annotations

from typing import Annotated, Any, Self

import msgspec
from msgspec import Meta

from penstock.api.messages import (
    Attempts,
    Crashes,
    EndReason,
    EntityId,
    ErrorLine,
    Failures,
    FinishedAt,
    FirstLeasedAt,
    Kind,
    LastError,
    LeasedAt,
    LeasedBy,
    MessageId,
    ResultValue,
    SentAt,
    Size,
    Tags,
)
from penstock.api.operation import (
    AnswerRecord,
    Cursor,
    DurationMs,
    Instant,
    InstantIn,
    Limit,
    Next,
    OfKind,
    QueryRecord,
    QueueName,
    ToInstant,
    WithEntityId,
    WithTag,
    about,
    everywhere,
    named,
)
from penstock.domain import fact as domain_fact
from penstock.domain.errors import TooManyWaiting
from penstock.domain.message import history as domain
from penstock.domain.message.error_line import error_line
from penstock.domain.message.history import AttemptOutcome, tags_of
from penstock.domain.message.lifecycle import State

_OUTCOMES = [state.value for state in (State.DONE, State.DEAD, State.CANCELLED)]


class Ending(AnswerRecord, frozen=True, omit_defaults=True):
    """How a message ended; fields without a value are left out."""

    id: MessageId
    queue: Annotated[str, about("The queue in which it ended.")]
    outcome: Annotated[State, about("How it ended: done, dead or cancelled.")]
    sent_at: SentAt
    finished_at: Annotated[Instant, about("When it was done, died or was cancelled.")]
    attempts: Attempts
    failures: Failures
    size: Size
    reason: EndReason = None
    kind: Kind = None
    entity_id: EntityId = None
    tags: Tags = ()
    group: Annotated[str | None, about("The group it belonged to.")] = None
    priority: Annotated[int, about("Messages with a smaller number were claimed first.")] = 0
    first_leased_at: FirstLeasedAt = None
    leased_at: LeasedAt = None
    leased_by: LeasedBy = None
    last_error: LastError = None
    route: Annotated[str | None, about("The route whose circuit workers consulted.")] = None
    crashes: Crashes = 0
    error_line: ErrorLine = None

    @classmethod
    def of(cls, ending: domain.Ending, instant: ToInstant) -> Self:
        line = _line(ending.last_error)
        return cls.copy_of(ending, instant, tags=tags_of(ending), error_line=line)


class Attempt(AnswerRecord, frozen=True, omit_defaults=True):
    """A lease that ended without finishing its message; fields without a value are left out."""

    lease_no: Annotated[int, about("The number of the lease; it grows with each claim.")]
    outcome: Annotated[AttemptOutcome, about("How the lease ended.")]
    ended_at: Annotated[Instant, about("When the lease ended.")]
    leased_at: Annotated[Instant | None, about("When the message was claimed.")] = None
    leased_by: Annotated[str | None, about("The worker that claimed it.")] = None
    error: Annotated[str | None, about("What went wrong.")] = None
    error_line: ErrorLine = None

    @classmethod
    def of(cls, attempt: domain.Attempt, instant: ToInstant) -> Self:
        return cls.copy_of(attempt, instant, error_line=_line(attempt.error))


def _line(error: str | None) -> str | None:
    return None if error is None else error_line(error)


class History(AnswerRecord, frozen=True):
    endings: Annotated[list[Ending], about("How messages ended, newest first.")]
    next: Next


class MessageHistory(AnswerRecord, frozen=True):
    endings: Annotated[list[Ending], about("How the message ended, newest first.")]
    attempts: Annotated[list[Attempt], about("Leases that ended without finishing the message.")]


class SearchHistory(QueryRecord):
    queue: Annotated[
        QueueName | None, Meta(description="Only messages that ended here.", examples=["mail"])
    ] = None
    kind: OfKind = None
    tag: WithTag = None
    entity_id: WithEntityId = None
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


class Result(AnswerRecord, frozen=True, omit_defaults=True):
    id: MessageId
    state: Annotated[
        State, about("The state of the message; dead also for one in a dead-letter queue.")
    ]
    is_ended: Annotated[bool, about("Whether it is done, dead or cancelled.")]
    result: ResultValue = None
    error: Annotated[
        str | None, about("The error of the last failed attempt, if it is dead or cancelled.")
    ] = None
    reason: EndReason = None
    finished_at: FinishedAt = None


class WaitForEnd(QueryRecord):
    wait_ms: Annotated[DurationMs, about("How long to wait for the end of the message.")] = 0


class Fact(AnswerRecord, frozen=True):
    at: Annotated[Instant, about("When it happened.")]
    kind: Annotated[str, about("What happened, such as `worker_lost`.")]
    subject: Annotated[str, about("What it happened to: an id or a name.")]
    data: Annotated[dict[str, Any], about("Details.")]

    @classmethod
    def of(cls, fact: domain_fact.Fact, instant: ToInstant) -> Self:
        return cls.copy_of(fact, instant, data=msgspec.json.decode(fact.data))


class Facts(AnswerRecord, frozen=True):
    facts: Annotated[list[Fact], about("The facts, newest first.")]
    next: Next


class SearchFacts(QueryRecord):
    kind: Annotated[str | None, about("Only facts of this kind.")] = None
    subject: Annotated[str | None, about("Only facts about this id or name.")] = None
    from_: Annotated[InstantIn | None, about("Only facts recorded at this instant or later.")] = (
        msgspec.field(default=None, name="from")
    )
    to: Annotated[InstantIn | None, about("Only facts recorded before this instant.")] = None
    limit: Limit = 100
    cursor: Cursor = None


SEARCH = named.get(
    "searchHistory",
    "/v1/history",
    "Search finished messages, newest first.",
    History,
    query=SearchHistory,
)
GET = named.get(
    "getHistory",
    "/v1/history/{id}",
    "Retrieve the endings and the attempts of a message.",
    MessageHistory,
)
RESULT = named.get(
    "getResult",
    "/v1/messages/{id}/result",
    "Retrieve the result of a message; waits up to `wait_ms` for its end.",
    Result,
    query=WaitForEnd,
    errors=(TooManyWaiting,),
)
SEARCH_FACTS = everywhere.get(
    "searchFacts",
    "/v1/facts",
    "Search facts about workers, circuits and other things than messages, newest first.",
    Facts,
    query=SearchFacts,
)
