"""The fields of a draft as keyword arguments."""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict

from penstock.domain.queue.queue import DedupUntil


class RunOptions(TypedDict, total=False):
    """The fields of a draft that kinds of jobs can set for all their jobs, as keyword arguments."""

    priority: int  # smaller goes first
    retries_timeouts: bool  # retry an attempt that timed out; otherwise the message is dead
    route: str | None  # the route it calls, for circuits and statistics


class SendOptions(RunOptions, total=False):
    """The fields of a draft except its body, as keyword arguments."""

    attributes: dict[str, str] | None
    kind: str | None
    entity_id: str | None
    tags: tuple[str, ...]
    group: str | None
    due_at: datetime | None
    delay_ms: int | None
    dedup_key: str | None
    expires_at: datetime | None
    expires_in_ms: int | None
    max_attempts: int | None
    trace: str | None
    timeout_ms: int | None
    dedup_until: DedupUntil | None
    dedup_window_ms: int | None
