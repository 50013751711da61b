"""What the server tells, as records.  Instants are datetimes in UTC; unknown fields are skipped."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from penstock.domain.message.history import AttemptOutcome
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import DedupUntil, QueueSettings
from penstock.domain.schedule.schedule import CatchUp, Overlap


class Counts(msgspec.Struct, frozen=True):
    waiting: int = 0
    ready: int = 0
    leased: int = 0
    dead: int = 0


class Totals(msgspec.Struct, frozen=True):
    sent: int = 0
    done: int = 0
    dead: int = 0
    cancelled: int = 0
    failed: int = 0
    expired_leases: int = 0
    claimed: int = 0


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    settings: QueueSettings
    is_paused: bool
    created_at: datetime
    counts: Counts
    totals: Totals
    oldest_ready_at: datetime | None = None
    held_by: str | None = None  # the circuit that holds it
    note: str | None = None  # after a resume: why claims do not go on all the same


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


class Recurring(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Work that is sent again and again."""

    name: str
    queue: str
    body: Any
    catch_up: CatchUp
    overlap: Overlap
    is_paused: bool
    created_at: datetime
    changed_at: datetime
    fired: int
    skipped: int
    cron: str | None = None
    zone: str | None = None
    every_ms: int | None = None
    kind: str | None = None
    entity_id: str | None = None
    tags: tuple[str, ...] = ()
    group: str | None = None
    priority: int = 0
    attributes: dict[str, str] = {}
    max_attempts: int | None = None
    expires_in_ms: int | None = None
    timeout_ms: int | None = None
    retries_timeouts: bool = False
    route: str | None = None
    dedup_key: str | None = None
    dedup_until: DedupUntil | None = None
    next_at: datetime | None = None
    last_at: datetime | None = None
    last_id: str | None = None
    last_error: str | None = None
    owner: str | None = None  # the application that declared it; None: it was made by hand


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


class QueuePage(msgspec.Struct, frozen=True):
    queues: list[Queue]
    next: str | None = None


class EndingPage(msgspec.Struct, frozen=True):
    endings: list[Ending]
    next: str | None = None
