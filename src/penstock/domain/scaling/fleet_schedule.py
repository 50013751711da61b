"""Limits of a fleet by time of day, such as five workers on weekdays from 8 to 18 in Berlin.

A period lasts from the first instant at which clocks in its zone show `from` until the last at
which they show `to`.  So a period that is partly repeated when clocks go back continues without a
break, and one whose start is skipped starts right after the gap.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from msgspec import Meta

from penstock.domain.datetimes import instant_of, moment_of
from penstock.domain.limits import MINUTE
from penstock.domain.scaling.recommendation import MAX_REPLICAS

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_TIME = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])|24:00")
_DAY_MINUTES = 24 * 60


class Period(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    days: Annotated[tuple[str, ...], Meta(min_length=1)] = ("mon-sun",)  # days, or ranges of days
    from_: str = msgspec.field(default="00:00", name="from")
    to: str = "24:00"  # if not later than `from`: on the next day
    zone: str = "UTC"
    min: Annotated[int, Meta(ge=0, le=MAX_REPLICAS)] | None = None  # None: as without the period
    max: Annotated[int, Meta(ge=1, le=MAX_REPLICAS)] | None = None

    def __post_init__(self) -> None:
        _weekdays(self.days)
        _zone(self.zone)
        if _minutes("from", self.from_) == _minutes("to", self.to):
            raise ValueError(f"from and to are both {self.to}; leave both out for the whole day")
        if self.from_ == "24:00":
            raise ValueError("from is 24:00; write 00:00 and the next day")
        if self.min is None and self.max is None:
            raise ValueError("a period without min and max changes nothing; set one of them")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"min is {self.min}, which is more than max, {self.max}")


def is_in_force(period: Period, *, now: int) -> bool:
    zone = _zone(period.zone)
    weekdays = _weekdays(period.days)
    today = moment_of(now).astimezone(zone).date()
    return any(
        begins <= now < ends
        for day in (today - timedelta(days=1), today)
        if day.weekday() in weekdays
        for begins, ends in (_span(period, day, zone),)
    )


def limits_at(least: int, most: int, schedule: tuple[Period, ...], *, now: int) -> tuple[int, int]:
    """If several periods are in force, the last one counts, for min and max separately."""
    for period in schedule:
        if is_in_force(period, now=now):
            least = least if period.min is None else period.min
            most = most if period.max is None else period.max
    return min(least, most), most


def _span(period: Period, day: date, zone: ZoneInfo) -> tuple[int, int]:
    begin, end = _minutes("from", period.from_), _minutes("to", period.to)
    if end <= begin:
        end += _DAY_MINUTES
    midnight = datetime.combine(day, time())
    return (
        _instant(midnight + timedelta(minutes=begin), zone, is_end=False),
        _instant(midnight + timedelta(minutes=end), zone, is_end=True),
    )


def _instant(wall: datetime, zone: ZoneInfo, *, is_end: bool) -> int:
    early, late = sorted(instant_of(wall.replace(tzinfo=zone, fold=fold)) for fold in (0, 1))
    if early == late or _wall(early, zone) == wall:  # a local time that occurs once or twice
        return late if is_end else early
    return next(at for at in range(early, late + MINUTE, MINUTE) if _wall(at, zone) >= wall)


def _wall(at: int, zone: ZoneInfo) -> datetime:
    return moment_of(at).astimezone(zone).replace(tzinfo=None, fold=0)


def _weekdays(days: tuple[str, ...]) -> set[int]:
    """Raises ValueError."""
    found: set[int] = set()
    for text in days:
        first, _, last = text.partition("-")
        if first not in DAYS or (last or first) not in DAYS or text.endswith("-"):
            raise ValueError(
                f"days: {text!r} is not a day or a range of days; write mon, or mon-fri"
            )
        begin, end = DAYS.index(first), DAYS.index(last or first)
        found |= {number % 7 for number in range(begin, end + 1 + (7 if end < begin else 0))}
    return found


def _minutes(name: str, text: str) -> int:
    """Minutes since midnight; raises ValueError."""
    if not _TIME.fullmatch(text):
        raise ValueError(f"{name}: {text!r} is not a time of day; write hours and minutes: 08:30")
    hours, _, minutes = text.partition(":")
    return int(hours) * 60 + int(minutes)


def _zone(name: str) -> ZoneInfo:
    """Raises ValueError."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"zone: time zone {name[:100]!r} does not exist") from None
