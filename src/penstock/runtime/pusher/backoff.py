"""How long a failed delivery waits, and with it the rest of its queue."""

from __future__ import annotations

from collections.abc import Sequence
from email.utils import parsedate_to_datetime

import msgspec

from penstock.domain.limits import HOUR, SECOND

SHORTEST_MS = SECOND  # between two attempts if the endpoint sends Retry-After


class BackoffSettings(msgspec.Struct, frozen=True, kw_only=True):
    retry_ms: int = 10 * SECOND  # for routes without intervals
    honours_retry_after: bool = False
    max_retry_after_ms: int = HOUR


def delay_ms(
    waits: BackoffSettings,
    intervals_ms: Sequence[int],
    *,
    failures: int,
    retry_after: str | None = None,
    now: int,
) -> int:
    """`failures`: in a row, including this one.  The last interval applies to all later failures.

    `retry_after` can only lengthen the delay: an endpoint that returns 0 must not cause a hot loop.
    """
    own = intervals_ms[min(failures, len(intervals_ms)) - 1] if intervals_ms else waits.retry_ms
    asked = None
    if waits.honours_retry_after and retry_after is not None:
        asked = retry_after_ms(retry_after, now=now)
    if asked is None:
        return own
    return max(own, SHORTEST_MS, min(asked, waits.max_retry_after_ms))


def retry_after_ms(text: str, *, now: int) -> int | None:
    """Parse seconds or an HTTP date; None if it is neither."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        return int(text[:12]) * SECOND
    try:
        instant = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0, int(instant.timestamp() * 1000) - now)
