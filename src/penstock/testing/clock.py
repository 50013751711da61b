"""A clock that moves only when a test advances it."""

from __future__ import annotations

from datetime import datetime

from penstock.domain.datetimes import moment_of
from penstock.domain.limits import DAY, HOUR, MINUTE, SECOND

NOON = 1_899_720_000_000  # 2030-03-14, 12:00 UTC: far from both ends of the day


class ManualClock:
    """`clock.advance(minutes=5)` instead of waiting."""

    def __init__(self, start: int = NOON) -> None:
        self._now = start

    def now(self) -> int:
        return self._now

    @property
    def moment(self) -> datetime:
        """The current instant as a datetime."""
        return moment_of(self._now)

    def advance(
        self, *, days: int = 0, hours: int = 0, minutes: int = 0, seconds: int = 0, ms: int = 0
    ) -> int:
        """Advance the clock; returns the new instant."""
        self._now += days * DAY + hours * HOUR + minutes * MINUTE + seconds * SECOND + ms
        return self._now
