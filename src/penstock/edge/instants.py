"""Instants as the world writes them: ISO 8601 text, UTC, milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from penstock.domain.datetimes import instant_of, moment_of
from penstock.domain.errors import InvalidRequest


def to_text(instant: int) -> str:
    seconds, millis = divmod(instant, 1000)
    return f"{_second(seconds)}.{millis:03}Z"


def from_text(name: str, value: int | str) -> int:
    """Milliseconds since the epoch; text without an offset is UTC."""
    if isinstance(value, int):
        return value
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return instant_of(moment)
    except (ValueError, OverflowError):
        raise InvalidRequest(f"{name} is not an ISO 8601 instant: {value[:40]!r}") from None


def read_instant(name: str, text: str | None, *, default: int) -> int:
    """From a query, where a number is text, too."""
    if text is None:
        return default
    if text.isascii() and text.isdigit() and len(text) < 16:
        return int(text)
    return from_text(name, text)


@lru_cache(maxsize=4096)
def _second(seconds: int) -> str:
    return moment_of(seconds * 1000).strftime("%Y-%m-%dT%H:%M:%S")
