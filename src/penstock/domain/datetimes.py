"""Instants: milliseconds since the epoch, datetimes with a time zone, ISO 8601 text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from penstock.domain.errors import InvalidRequest

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLI = timedelta(milliseconds=1)


def moment_of(instant: int) -> datetime:
    return _EPOCH + instant * _MILLI


def instant_of(moment: datetime) -> int:
    """Milliseconds since the epoch; the moment has a time zone."""
    return (moment - _EPOCH) // _MILLI


def parse_instant(name: str, value: datetime | int | str) -> int:
    """Milliseconds since the epoch; text without an offset is UTC."""
    if isinstance(value, int):
        return value
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return instant_of(moment)
    except (ValueError, OverflowError):
        raise InvalidRequest(f"{name} is not an ISO 8601 instant: {str(value)[:40]!r}") from None


def read_instant(name: str, value: datetime | int | str | None, *, default: int) -> int:
    """Parse a value of a query, where a number may be text."""
    if value is None:
        return default
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        return int(value)
    return parse_instant(name, value)
