"""A draft as a client sends it, read."""

from __future__ import annotations

from penstock.api import sends
from penstock.domain.datetimes import parse_instant
from penstock.domain.message.draft import Draft
from penstock.operations.json_text import text_of


def draft_of(given: sends.Draft) -> Draft:
    """Raises InvalidRequest."""
    due_at, expires_at = given.due_at, given.expires_at
    return Draft(
        body=text_of(given.body),
        attributes=given.attributes,
        kind=given.kind,
        entity_id=given.entity_id,
        tags=given.tags,
        group=given.group,
        priority=given.priority,
        due_at=None if due_at is None else parse_instant("due_at", due_at),
        delay_ms=given.delay_ms,
        dedup_key=given.dedup_key,
        expires_at=None if expires_at is None else parse_instant("expires_at", expires_at),
        expires_in_ms=given.expires_in_ms,
        max_attempts=given.max_attempts,
        trace=given.trace,
        timeout_ms=given.timeout_ms,
        retries_timeouts=given.retries_timeouts,
        dedup_until=given.dedup_until,
        route=given.route,
        dedup_window_ms=given.dedup_window_ms,
    )
