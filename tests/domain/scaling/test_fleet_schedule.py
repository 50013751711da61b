"""Limits of a fleet by time of day, in a time zone."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.datetimes import instant_of, moment_of
from penstock.domain.limits import MINUTE
from penstock.domain.scaling.fleet_schedule import Period, is_in_force, limits_at

BERLIN = "Europe/Berlin"
OFFICE = Period(days=("mon-fri",), from_="08:00", to="18:00", zone=BERLIN, min=5)


def at(text: str) -> int:
    """2026-11-16 is a Monday."""
    return instant_of(datetime.fromisoformat(text))


def period(from_: str, to: str, **more: Any) -> Period:
    return Period(**{"from_": from_, "to": to, "zone": BERLIN, "min": 1, **more})


@pytest.mark.parametrize(
    ("when", "holds"),
    [
        ("2026-11-16T06:59:59+00:00", False),  # winter: an hour ahead of UTC
        ("2026-11-16T07:00:00+00:00", True),
        ("2026-11-16T16:59:59+00:00", True),
        ("2026-11-16T17:00:00+00:00", False),
        ("2026-07-13T06:00:00+00:00", True),  # summer: two hours
        ("2026-07-13T05:59:59+00:00", False),
        ("2026-11-20T12:00:00+00:00", True),  # Friday
        ("2026-11-21T12:00:00+00:00", False),
        ("2026-11-22T12:00:00+00:00", False),
    ],
)
def test_a_period_goes_by_the_clocks_of_its_zone(when: str, holds: bool) -> None:
    assert is_in_force(OFFICE, now=at(when)) is holds


@pytest.mark.parametrize(
    ("when", "holds"),
    [
        ("2026-11-20T21:59+01:00", False),
        ("2026-11-20T22:00+01:00", True),  # Friday
        ("2026-11-21T05:59+01:00", True),  # it belongs to the day on which it began
        ("2026-11-21T06:00+01:00", False),
        ("2026-11-21T22:00+01:00", False),
        ("2026-11-20T05:00+01:00", False),  # Thursday's night is not one of them
    ],
)
def test_a_period_may_continue_after_midnight(when: str, holds: bool) -> None:
    night = period("22:00", "06:00", days=("fri",))

    assert is_in_force(night, now=at(when)) is holds


def test_a_period_without_times_is_the_whole_day() -> None:
    sunday = Period(days=("sun",), zone=BERLIN, max=1)

    assert not is_in_force(sunday, now=at("2026-11-21T23:59:59+01:00"))
    assert is_in_force(sunday, now=at("2026-11-22T00:00+01:00"))
    assert is_in_force(sunday, now=at("2026-11-22T23:59:59+01:00"))
    assert not is_in_force(sunday, now=at("2026-11-23T00:00+01:00"))


def test_ranges_of_days_may_continue_after_sunday() -> None:
    weekend = period("00:00", "24:00", days=("fri-mon",))
    found = [is_in_force(weekend, now=at(f"2026-11-{day}T12:00+01:00")) for day in range(16, 23)]

    assert found == [True, False, False, False, True, True, True]


# ---- daylight saving: on 2026-03-29 two o'clock is followed by three, on 2026-10-25 it comes twice


def minutes_in_force(of: Period, since: str, until: str) -> list[str]:
    """In UTC."""
    found = []
    for now in range(at(since), at(until), MINUTE):
        if is_in_force(of, now=now):
            found.append(moment_of(now).strftime("%H:%M"))
    return found


@pytest.mark.parametrize(
    ("from_", "to", "first", "last", "minutes"),
    [
        ("01:30", "03:30", "00:30", "01:29", 60),  # an hour less than the clocks show
        ("02:30", "04:00", "01:00", "01:59", 60),  # it begins right after the gap
        ("01:00", "02:30", "00:00", "00:59", 60),  # it ends with the gap
        ("02:15", "02:45", "", "", 0),  # it does not come on this day
    ],
)
def test_in_spring_what_is_skipped_is_left_out(
    from_: str, to: str, first: str, last: str, minutes: int
) -> None:
    found = minutes_in_force(period(from_, to), "2026-03-28T23:00+00:00", "2026-03-29T22:00+00:00")

    assert (found[0] if found else "", found[-1] if found else "") == (first, last)
    assert len(found) == minutes


@pytest.mark.parametrize(
    ("from_", "to", "first", "last", "minutes"),
    [
        ("01:30", "03:30", "23:30", "02:29", 180),  # an hour more than the clocks show
        ("02:30", "04:00", "00:30", "02:59", 150),  # from the first half past two on
        ("01:00", "02:30", "23:00", "01:29", 150),  # until the second half past two
        ("02:15", "02:45", "00:15", "01:44", 90),  # without a break
    ],
)
def test_a_repeated_hour_in_autumn_is_one_period(
    from_: str, to: str, first: str, last: str, minutes: int
) -> None:
    found = minutes_in_force(
        period(from_, to, days=("sun",)), "2026-10-24T22:00+00:00", "2026-10-25T23:00+00:00"
    )

    assert (found[0], found[-1], len(found)) == (first, last, minutes)


# ---- limits


def test_the_last_period_in_force_counts_for_min_and_for_max_each() -> None:
    noon = at("2026-11-16T12:00+01:00")
    lunch = period("11:00", "13:00", min=None, max=8)
    later = period("14:00", "15:00", min=50, max=60)

    assert limits_at(1, 20, (), now=noon) == (1, 20)
    assert limits_at(1, 20, (OFFICE, lunch, later), now=noon) == (5, 8)
    assert limits_at(1, 20, (OFFICE, period("00:00", "24:00", min=2)), now=noon) == (2, 20)


def test_where_min_and_max_contradict_each_other_max_counts() -> None:
    noon = at("2026-11-16T12:00+01:00")

    assert limits_at(1, 20, (OFFICE, period("11:00", "13:00", min=None, max=3)), now=noon) == (3, 3)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"min": 1, "days": ["monday"]}, "days: 'monday' is not a day"),
        ({"min": 1, "days": ["mon-"]}, "days: 'mon-'"),
        ({"min": 1, "days": []}, "length >= 1"),
        ({"min": 1, "from": "8:00"}, "from: '8:00' is not a time of day"),
        ({"min": 1, "to": "24:30"}, "to: '24:30'"),
        ({"min": 1, "from": "08:00", "to": "08:00"}, "from and to are both 08:00"),
        ({"min": 1, "from": "24:00", "to": "08:00"}, "from is 24:00"),
        ({"min": 1, "zone": "Europe/Paree"}, "time zone 'Europe/Paree' does not exist"),
        ({"min": 1, "zone": "../etc/passwd"}, "does not exist"),
        ({}, "set one of them"),
        ({"min": 3, "max": 2}, "min is 3"),
        ({"min": -1}, ">= 0"),
    ],
)
def test_a_period_that_means_nothing_is_refused(given: dict[str, Any], why: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=why):
        msgspec.convert(given, Period)


@given(
    now=st.integers(0, 4_102_444_800_000),
    zone=st.sampled_from(
        ["UTC", BERLIN, "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]
    ),
)
def test_two_halves_of_a_day_are_the_whole_day(now: int, zone: str) -> None:
    morning = Period(to="12:00", zone=zone, min=1)
    evening = Period(from_="12:00", zone=zone, min=1)

    assert is_in_force(morning, now=now) != is_in_force(evening, now=now)
