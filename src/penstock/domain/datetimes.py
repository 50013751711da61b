"""Instants as the rest of Python has them: datetimes with a time zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLI = timedelta(milliseconds=1)


def moment_of(instant: int) -> datetime:
    return _EPOCH + instant * _MILLI


def instant_of(moment: datetime) -> int:
    """Milliseconds since the epoch; the moment has a time zone."""
    return (moment - _EPOCH) // _MILLI
