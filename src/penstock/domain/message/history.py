"""History: an ending per finished message, an attempt per lease that did not finish its message."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import check_range
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import (
    LEASE_EXPIRED,
    TOOK_TOO_LONG,
    WORKER_DIED,
    Message,
    State,
)


class AttemptOutcome(StrEnum):
    FAILED = "failed"
    EXPIRED = "expired"
    RELEASED = "released"
    SNOOZED = "snoozed"
    TIMED_OUT = "timed_out"
    CRASHED = "crashed"


# The holder began the attempt, and it did not succeed.
FAILURES = frozenset({AttemptOutcome.FAILED, AttemptOutcome.TIMED_OUT, AttemptOutcome.CRASHED})
OUTCOME_OF = {
    Verb.FAIL: AttemptOutcome.FAILED,
    Verb.RELEASE: AttemptOutcome.RELEASED,
    Verb.SNOOZE: AttemptOutcome.SNOOZED,
    Verb.TIME_OUT: AttemptOutcome.TIMED_OUT,
    Verb.CRASH: AttemptOutcome.CRASHED,
}


_DEFAULT_ERRORS = {
    AttemptOutcome.EXPIRED: LEASE_EXPIRED,
    AttemptOutcome.TIMED_OUT: TOOK_TOO_LONG,
    AttemptOutcome.CRASHED: WORKER_DIED,
}


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    history_no: int
    id: str
    message_no: int
    queue: str
    outcome: State  # done, dead or cancelled
    reason: str | None
    kind: str | None
    entity_id: str | None
    tag1: str | None
    tag2: str | None
    group: str | None
    priority: int
    sent_at: int
    due_at: int
    first_leased_at: int | None
    leased_at: int | None
    finished_at: int
    attempts: int
    failures: int
    leased_by: str | None
    last_error: str | None
    size: int
    body_day: int
    route: str | None = None
    crashes: int = 0


class Attempt(msgspec.Struct, frozen=True):
    id: str
    message_no: int
    queue_no: int
    lease_no: int
    outcome: AttemptOutcome
    leased_at: int | None
    ended_at: int
    leased_by: str | None
    error: str | None


class HistoryFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which endings to return; `from_at <= finished_at < to_at`, newest first."""

    id: str | None = None
    queue: str | None = None
    kind: str | None = None
    entity_id: str | None = None
    tag: str | None = None
    outcome: State | None = None
    from_at: int = 0
    to_at: int = 2**62
    before: tuple[int, int] | None = None  # cursor: (finished_at, history_no) of the last one seen
    limit: int = 100
    tag1: str | None = None
    tag2: str | None = None


def attempt(
    message: Message, outcome: AttemptOutcome, *, now: int, error: str | None = None
) -> Attempt:
    """The history of a lease that ended without finishing its message."""
    return Attempt(
        id=message.id,
        message_no=message.message_no,
        queue_no=message.queue_no,
        lease_no=message.lease_no,
        outcome=outcome,
        leased_at=message.leased_at,
        ended_at=now,
        leased_by=message.leased_by,
        error=error or _DEFAULT_ERRORS.get(outcome),
    )


def check_filter(wanted: HistoryFilter, *, max_limit: int) -> HistoryFilter:
    check_range("limit", wanted.limit, 1, max_limit)
    if wanted.outcome is not None and wanted.outcome not in (
        State.DONE,
        State.DEAD,
        State.CANCELLED,
    ):
        raise InvalidRequest("outcome is done, dead or cancelled")
    return wanted


def tags_of(message: Message | Ending) -> tuple[str, ...]:
    return tuple([tag for tag in (message.tag1, message.tag2) if tag is not None])
