"""What the server tells, as records.  Instants are datetimes in UTC; unknown fields are skipped."""

from __future__ import annotations

from datetime import datetime

import msgspec

from penstock.api.queues import Counts, Totals
from penstock.domain.message.history import AttemptOutcome
from penstock.domain.message.lifecycle import State


class Ending(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a message ended."""

    id: str
    queue: str
    outcome: State
    sent_at: datetime
    finished_at: datetime
    attempts: int = 0
    failures: int = 0
    size: int = 0
    reason: str | None = None
    kind: str | None = None
    entity_id: str | None = None
    tags: tuple[str, ...] = ()
    group: str | None = None
    priority: int = 0
    first_leased_at: datetime | None = None
    leased_at: datetime | None = None
    leased_by: str | None = None
    last_error: str | None = None
    route: str | None = None
    crashes: int = 0


class Attempt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A lease that ended without finishing its message."""

    lease_no: int
    outcome: AttemptOutcome
    ended_at: datetime
    leased_at: datetime | None = None
    leased_by: str | None = None
    error: str | None = None


class Past(msgspec.Struct, frozen=True):
    endings: list[Ending]
    attempts: list[Attempt]


class Readiness(msgspec.Struct, frozen=True):
    status: str
    reason: str | None = None  # why it is degraded


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    backend: str
    queues: int
    now: datetime
    counts: Counts
    totals: Totals
    version: str = ""
    waiting_claims: int = 0


class EndingPage(msgspec.Struct, frozen=True):
    endings: list[Ending]
    next: str | None = None
