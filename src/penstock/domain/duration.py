"""Durations as people write them: 500ms, 30s, 5m, 12h, 7d, 1h30m."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta

from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import DAY, HOUR, MINUTE, SECOND

Duration = str | timedelta

DURATIONS = {"ms": 1, "s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY}
DURATION_FORM = "a duration such as 500ms, 30s, 5m, 12h or 7d (a bare number is milliseconds)"

_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")


def as_ms(name: str, value: object) -> int:
    """Convert a program's value for `name` to milliseconds; raises InvalidRequest.

    A bare number is refused: in a program it could mean seconds as well as milliseconds.
    """
    if isinstance(value, timedelta):
        ms = value // timedelta(milliseconds=1)
        if ms < 0:
            raise InvalidRequest(f"{name} is {value!r}: a duration must not be negative")
        return ms
    text = value if isinstance(value, str) else ""
    if not text.strip().replace(".", "", 1).isdecimal():
        with suppress(ValueError):
            return duration_ms(text)
    raise InvalidRequest(
        f"{name} is {value!r}: give a duration such as '500ms', '30s', '5m' or '7d', or a timedelta"
    )


def duration_ms(text: str) -> int:
    """Milliseconds; units may follow each other, as in 1h30m.  Raises ValueError."""
    return measure(text, DURATIONS, "ms", DURATION_FORM)


def duration_text(value: int) -> str:
    """The shortest exact form: 90000 is 90s, 120000 is 2m."""
    return told(value, DURATIONS, "ms")


def measure(text: str, units: Mapping[str, int], plain: str, form: str) -> int:
    """Add up numbers with units; `plain` is the unit of a bare number."""
    rest, total, parts = text.strip(), 0.0, 0
    while rest:
        match = _PART.match(rest)
        unit = (match[2] or plain) if match else ""
        # Only a single number may omit its unit: in "1h30" the 30 could mean anything.
        if match is None or unit not in units or (not match[2] and match[0] != text.strip()):
            raise ValueError(f"{text!r} is not {form}")
        total += float(match[1]) * units[unit]
        rest, parts = rest[match.end() :], parts + 1
    if not parts or total != int(total):
        raise ValueError(f"{text!r} is not {form}")
    return int(total)


def told(value: int, units: Mapping[str, int], plain: str) -> str:
    for name, size in sorted(units.items(), key=lambda unit: -unit[1]):
        if value and value % size == 0 and name != plain:
            return f"{value // size}{name}"
    return f"{value}{plain}"
