"""Durations and sizes as people write them: 30s, 5m, 12h; 64KiB, 1MiB."""

from __future__ import annotations

import re

from penstock.domain.limits import DAY, HOUR, MINUTE, SECOND

DURATIONS = {"ms": 1, "s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY}
SIZES = {
    "B": 1,
    "KiB": 1024,
    "MiB": 1024**2,
    "GiB": 1024**3,
    "kB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
}
DURATION_FORM = "a duration such as 500ms, 30s, 5m, 12h or 7d (a bare number is milliseconds)"
SIZE_FORM = "a size such as 64KiB or 1MiB (a bare number is bytes)"

_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")


def duration_ms(text: str) -> int:
    """Milliseconds; parts may follow each other, as in 1h30m.  Raises ValueError."""
    return _measure(text, DURATIONS, "ms", DURATION_FORM)


def size_bytes(text: str) -> int:
    """Raises ValueError."""
    return _measure(text, SIZES, "B", SIZE_FORM)


def duration_text(value: int) -> str:
    """The shortest exact form: 90000 is 90s, 120000 is 2m."""
    return _told(value, DURATIONS, "ms")


def size_text(value: int) -> str:
    binary = {name: size for name, size in SIZES.items() if "i" in name or name == "B"}
    return _told(value, binary, "B")


def _measure(text: str, units: dict[str, int], plain: str, form: str) -> int:
    rest, total, parts = text.strip(), 0.0, 0
    while rest:
        match = _PART.match(rest)
        unit = (match[2] or plain) if match else ""
        # Without a unit only a number alone is clear: in "1h30" the 30 could be anything.
        if match is None or unit not in units or (not match[2] and match[0] != text.strip()):
            raise ValueError(f"{text!r} is not {form}")
        total += float(match[1]) * units[unit]
        rest, parts = rest[match.end() :], parts + 1
    if not parts or total != int(total):
        raise ValueError(f"{text!r} is not {form}")
    return int(total)


def _told(value: int, units: dict[str, int], plain: str) -> str:
    for name, size in sorted(units.items(), key=lambda unit: -unit[1]):
        if value and value % size == 0 and name != plain:
            return f"{value // size}{name}"
    return f"{value}{plain}"
