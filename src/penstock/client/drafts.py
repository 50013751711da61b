"""What a caller wants to send, or to do with a lease."""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypedDict

import msgspec

from penstock.domain.message.lease import Verb
from penstock.domain.queue.queue import DedupUntil


class SendOptions(TypedDict, total=False):
    """Everything about a message but its body; see `Draft`."""

    attributes: dict[str, str] | None
    kind: str | None
    entity_id: str | None
    tags: tuple[str, ...]
    group: str | None
    priority: int
    due_at: datetime | None
    delay_ms: int | None
    dedup_key: str | None
    expires_at: datetime | None
    expires_in_ms: int | None
    max_attempts: int | None
    trace: str | None
    timeout_ms: int | None
    retries_timeouts: bool
    dedup_until: DedupUntil | None
    route: str | None
    dedup_window_ms: int | None


class Draft(msgspec.Struct, frozen=True, omit_defaults=True):
    body: Any  # whatever can be JSON
    attributes: dict[str, str] | None = None
    kind: str | None = None
    entity_id: str | None = None
    tags: tuple[str, ...] = ()
    group: str | None = None
    priority: int = 0
    due_at: datetime | None = None
    delay_ms: int | None = None
    dedup_key: str | None = None
    expires_at: datetime | None = None
    expires_in_ms: int | None = None
    max_attempts: int | None = None
    trace: str | None = None
    timeout_ms: int | None = None  # how long one attempt may take
    retries_timeouts: bool = False
    dedup_until: DedupUntil | None = None  # None: for the queue's window
    route: str | None = None
    dedup_window_ms: int | None = None  # in place of the queue's


class ActOptions(TypedDict, total=False):
    error: str | None  # fail
    retry_in_ms: int | None  # fail
    delay_ms: int | None  # release, snooze
    lease_ms: int | None  # extend
    is_late_ok: bool | None  # complete, extend
    reason: str | None  # bury, cancel, snooze
    is_start: bool | None  # extend
    progress: Any  # extend


class Act(msgspec.Struct, frozen=True, omit_defaults=True):
    receipt: str
    act: Verb
    error: str | None = None
    retry_in_ms: int | None = None
    delay_ms: int | None = None
    lease_ms: int | None = None
    reason: str | None = None
    is_late_ok: bool | None = None
    is_start: bool | None = None
    progress: Any = None
