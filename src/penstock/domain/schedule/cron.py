"""Cron expressions, parsed by cronsim with the rules of Debian's cron.

A fixed time that the change to daylight saving skips fires right after the gap, one that is
repeated fires once, and hourly patterns follow real hours.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from penstock.domain.datetimes import instant_of, moment_of
from penstock.domain.errors import InvalidRequest

MAX_EXPRESSION_CHARS = 256
ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


def instants(expression: str, zone: str, after: int) -> Iterator[int]:
    """All instants after `after`, in order; raises InvalidRequest."""
    if len(expression) > MAX_EXPRESSION_CHARS:
        raise InvalidRequest(f"a cron expression has at most {MAX_EXPRESSION_CHARS} characters")
    start = moment_of(after).astimezone(_zone(zone))
    if expression.startswith("@") and expression not in ALIASES:
        known = ", ".join(ALIASES)
        raise InvalidRequest(f"{expression[:100]!r} is not a cron expression: known are {known}")
    try:
        found = CronSim(ALIASES.get(expression, expression), start)
    except CronSimError as error:
        text = expression[:100]
        raise InvalidRequest(f"{text!r} is not a cron expression: {error}") from None
    return _instants_after(found, after)


def in_words(expression: str) -> str:
    """`At 02:30 every day`; raises InvalidRequest."""
    try:
        return CronSim(ALIASES.get(expression, expression), moment_of(0)).explain()
    except CronSimError as error:
        text = expression[:100]
        raise InvalidRequest(f"{text!r} is not a cron expression: {error}") from None


def _instants_after(found: Iterator[datetime], after: int) -> Iterator[int]:
    last = after
    with suppress(OverflowError):  # the calendar ends
        for moment in found:
            at = instant_of(moment)
            # A repeated local time is reported by its first occurrence, even if that has passed.
            if at > last:
                last = at
                yield at


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidRequest(f"time zone {name[:100]!r} does not exist") from None
