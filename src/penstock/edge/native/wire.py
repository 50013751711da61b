"""The JSON of the native API as it answers."""

from __future__ import annotations

import msgspec

from penstock.api.queues import Counts, Totals
from penstock.domain.message.history import Attempt, AttemptOutcome, Ending
from penstock.domain.message.lifecycle import State
from penstock.edge.instants import to_text


class EndingOut(msgspec.Struct, omit_defaults=True):
    id: str
    queue: str
    outcome: State
    sent_at: str
    finished_at: str
    attempts: int
    failures: int
    size: int
    reason: str | None = None
    kind: str | None = None
    entity_id: str | None = None
    tags: list[str] = []
    group: str | None = None
    priority: int = 0
    first_leased_at: str | None = None
    leased_at: str | None = None
    leased_by: str | None = None
    last_error: str | None = None
    route: str | None = None
    crashes: int = 0


class AttemptOut(msgspec.Struct, omit_defaults=True):
    lease_no: int
    outcome: AttemptOutcome
    ended_at: str
    leased_at: str | None = None
    leased_by: str | None = None
    error: str | None = None


class HistoryOut(msgspec.Struct):
    endings: list[EndingOut]
    next: str | None


class PastOut(msgspec.Struct):
    endings: list[EndingOut]
    attempts: list[AttemptOut]


class StatsOut(msgspec.Struct):
    version: str
    backend: str
    queues: int
    waiting_claims: int
    now: str
    counts: Counts
    totals: Totals


def ending_out(ending: Ending) -> EndingOut:
    e = ending
    return EndingOut(
        e.id,
        e.queue,
        e.outcome,
        to_text(e.sent_at),
        to_text(e.finished_at),
        e.attempts,
        e.failures,
        e.size,
        e.reason,
        e.kind,
        e.entity_id,
        _tags(e.tag1, e.tag2),
        e.group,
        e.priority,
        None if e.first_leased_at is None else to_text(e.first_leased_at),
        None if e.leased_at is None else to_text(e.leased_at),
        e.leased_by,
        e.last_error,
        e.route,
        e.crashes,
    )


def attempt_out(attempt: Attempt) -> AttemptOut:
    a = attempt
    leased_at = None if a.leased_at is None else to_text(a.leased_at)
    return AttemptOut(a.lease_no, a.outcome, to_text(a.ended_at), leased_at, a.leased_by, a.error)


def _tags(*tags: str | None) -> list[str]:
    return [tag for tag in tags if tag is not None]
