"""Numbers, times and lists in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.domain.datetimes import moment_of
from penstock.domain.insights.answer import MAX_NAMED, Unit
from penstock.domain.limits import DAY, HOUR, MINUTE, SECOND

UNKNOWN = "unknown"
_BYTES = ((1024**4, "TiB"), (1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"))


def number(value: float) -> str:
    """1,234; 12.3; 0.05"""
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def count_phrase(count: int, noun: str, plural: str | None = None) -> str:
    """1 message, 2 messages"""
    return f"{number(count)} {noun if count == 1 else plural or noun + 's'}"


def duration(ms: float) -> str:
    """350 ms, 12.5 s, 9 min, 1 h 30 min, 2 d 3 h"""
    if ms < SECOND:
        return f"{ms:.0f} ms"
    if ms < MINUTE:
        return f"{number(round(ms / SECOND, 1))} s"
    for large, small, names in ((DAY, HOUR, "d h"), (HOUR, MINUTE, "h min"), (MINUTE, 1, "min -")):
        if ms >= large:
            unit, lower = names.split()
            if small == 1:
                return f"{number(round(ms / large, 1 if ms < 10 * large else None))} {unit}"
            whole, rest = divmod(round(ms / small) * small, large)
            more = f" {rest // small} {lower}" if rest else ""
            return f"{whole} {unit}{more}"
    raise AssertionError(ms)


def percent(share: float) -> str:
    """0.123 is 12 %, 0.0012 is 0.12 %"""
    value = 100 * share
    if 0 < value < 1:
        return f"{value:.2g} %"
    if 99 < value < 100:
        return f"{value:.4g} %"
    return f"{value:.0f} %"


def size(count: float) -> str:
    for unit, name in _BYTES:
        if abs(count) >= unit:
            return f"{count / unit:.3g} {name}"
    return count_phrase(round(count), "byte")


def instant(at: int) -> str:
    return f"{moment_of(at):%Y-%m-%d %H:%M} UTC"


def value_text(value: float | None, unit: Unit) -> str:
    if value is None:
        return UNKNOWN
    match unit:
        case Unit.MS:
            return duration(value)
        case Unit.HOURS:
            return f"{number(value)} h"
        case Unit.PERCENT:
            return percent(value / 100)
        case Unit.BYTES:
            return size(value)
    return number(value)


def join_names(names: Sequence[str], *, most: int = MAX_NAMED) -> str:
    """a; a and b; a, b and 3 more; nothing for nothing"""
    shown = list(names[:most])
    if len(names) > most:
        shown.append(f"{number(len(names) - most)} more")
    return " and ".join([*([", ".join(shown[:-1])] if shown[1:] else []), *shown[-1:]])


def shorten(text: str, *, most: int = 80) -> str:
    """The first line of a text, cut."""
    first = (text.strip().splitlines() or [""])[0]
    return first if len(first) <= most else f"{first[: most - 1]}…"
