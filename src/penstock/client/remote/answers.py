"""What the server tells, as records.  Instants are datetimes in UTC; unknown fields are skipped."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from penstock.domain.errors import PenstockError
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import DedupUntil
from penstock.domain.schedule.schedule import CatchUp, Overlap


class Sent(msgspec.Struct, frozen=True):
    id: str
    is_duplicate: bool = False


class Acted(msgspec.Struct, frozen=True):
    """A message after something was done with it."""

    id: str
    state: State
    due_at: datetime | None = None


class Changed(msgspec.Struct, frozen=True):
    """What became of an act on many messages."""

    matched: int
    changed: int
    refused: int
    is_cut: bool = False


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message: live, claimed (then it has a receipt), or from history."""

    id: str
    queue: str
    # By a factory, so that it is shown: a claim's answer need not name the state.
    state: State = msgspec.field(default_factory=lambda: State.LEASED)
    attempts: int
    sent_at: datetime
    body: Any = None
    receipt: str = ""
    lease_no: int = 0
    leased_until: datetime | None = None
    due_at: datetime | None = None
    attributes: dict[str, str] = {}
    kind: str | None = None
    entity_id: str | None = None
    tags: tuple[str, ...] = ()
    group: str | None = None
    is_blocked: bool = False
    priority: int = 0
    dedup_key: str | None = None
    expires_at: datetime | None = None
    max_attempts: int | None = None
    failures: int = 0
    trace: str | None = None
    first_leased_at: datetime | None = None
    leased_at: datetime | None = None
    leased_by: str | None = None
    last_error: str | None = None
    reason: str | None = None
    dead_from: str | None = None
    finished_at: datetime | None = None
    size: int = 0
    timeout_ms: int | None = None
    retries_timeouts: bool = False
    started_at: datetime | None = None
    deadline_at: datetime | None = None
    crashes: int = 0
    dedup_until: DedupUntil | None = None
    progress: Any = None
    route: str | None = None


class RawMessage(Message, frozen=True, kw_only=True):
    """Its body as it came, for those who read it themselves."""

    body: msgspec.Raw = msgspec.Raw(b"null")


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


class MessagePage(msgspec.Struct, frozen=True):
    messages: list[Message]
    next: str | None = None


class RawPage(msgspec.Struct, frozen=True):
    messages: list[RawMessage]


SendResult = Sent | PenstockError
ActResult = Acted | PenstockError
