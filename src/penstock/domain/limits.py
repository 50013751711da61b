"""Upper bounds, checked before any work is done.  Server settings may change them."""

from __future__ import annotations

import msgspec

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

NUL = "\x00"  # the one character that PostgreSQL cannot store in text
MAX_INSTANT = 253_402_300_799_999  # the last millisecond of the year 9999


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    max_body_bytes: int = 1024 * 1024
    max_batch: int = 1_000
    max_batch_bytes: int = 12 * 1024 * 1024
    max_claim: int = 1_000
    max_answer_bytes: int = 8 * 1024 * 1024  # bodies in one answer: a claim or a page
    max_wait_ms: int = 20 * SECOND
    max_lease_ms: int = 12 * HOUR
    max_attributes: int = 32
    max_attribute_bytes: int = 8 * 1024
    max_label_chars: int = 256  # kind, entity id, tags, group, dedup key, names of workers
    max_error_chars: int = 4 * 1024
    max_waiting_claims: int = 10_000
    max_listeners: int = 100  # of live updates


DEFAULT_LIMITS = Limits()
