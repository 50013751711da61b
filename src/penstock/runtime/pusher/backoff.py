"""How long a delivery that failed waits, and with it all behind it in its queue."""

from __future__ import annotations

from collections.abc import Sequence
from email.utils import parsedate_to_datetime

import msgspec

from penstock.domain.limits import HOUR, SECOND


class Waits(msgspec.Struct, frozen=True, kw_only=True):
    retry_ms: int = 10 * SECOND  # where the route does not say
    honours_retry_after: bool = False
    max_retry_after_ms: int = HOUR


def delay_ms(
    waits: Waits,
    intervals_ms: Sequence[int],
    *,
    failures: int,
    retry_after: str | None = None,
    now: int,
) -> int:
    """`failures`: in a row, this one included.  The last interval holds for all that follow."""
    if waits.honours_retry_after and retry_after is not None:
        asked = retry_after_ms(retry_after, now=now)
        if asked is not None:
            return min(asked, waits.max_retry_after_ms)
    if not intervals_ms:
        return waits.retry_ms
    return intervals_ms[min(failures, len(intervals_ms)) - 1]


def retry_after_ms(text: str, *, now: int) -> int | None:
    """Seconds, or an instant as HTTP writes it; None if it is neither."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        return int(text[:12]) * SECOND
    try:
        instant = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0, int(instant.timestamp() * 1000) - now)
