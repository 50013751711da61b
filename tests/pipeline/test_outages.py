"""Outages of routes, from the sums of their calls and the changes of their circuits."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType

from penstock.domain.limits import HOUR, MINUTE, SECOND
from penstock.pipeline.jobs.outages import failing_periods, merge, minute_sums, open_periods
from penstock.pipeline.schemas import DT as DAY_COLUMN
from penstock.pipeline.spark.frames import frame_of
from tests.pipeline.rows import DT, at, day_after, midnight, pairs

_KINDS = {
    **dict.fromkeys(("at", "message_no", "fact_no", "from_at", "to_at"), LongType()),
    **dict.fromkeys(("is_failure", "was_closed"), BooleanType()),
}
NOON = at("12:00:00")


def rows(spark, *given: dict[str, Any]) -> DataFrame:
    """Of one day and route, unless they say otherwise."""
    made = [{DAY_COLUMN: DT, "route": "/a"} | one for one in given]
    fields = [StructField(name, _KINDS.get(name, StringType())) for name in made[0]]
    return frame_of(spark, made, StructType(fields))


def calls(*said: tuple[int, str]) -> list[dict[str, Any]]:
    """At seconds after noon: x fails, . succeeds."""
    return [
        {"at": NOON + s * SECOND, "message_no": n, "is_failure": sign == "x"}
        for n, (s, sign) in enumerate(said)
    ]


def every_10s(signs: str) -> list[dict[str, Any]]:
    return calls(*((10 * n, sign) for n, sign in enumerate(signs)))


def failing(spark, said: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """In seconds after noon."""
    found = failing_periods(minute_sums(rows(spark, *said)), least_ms=MINUTE)
    return [
        ((from_at - NOON) // SECOND, (to_at - NOON) // SECOND)
        for from_at, to_at in pairs(found, "from_at", "to_at")
    ]


def test_an_outage_is_a_period_in_which_most_calls_failed(spark):
    assert failing(spark, every_10s("......" + "x.xxxx" + "xxxxxx" + "xx....")) == [(60, 170)]


def test_a_short_spike_is_not_an_outage(spark):
    assert failing(spark, every_10s("......" + "xxxxxx" + "......")) == []


def test_minutes_without_calls_do_not_end_an_outage(spark):
    assert failing(spark, calls((0, "x"), (10, "x"), (300, "x"), (301, "."))) == [(0, 300)]


def test_a_minute_in_which_most_calls_succeed_divides_two_outages(spark):
    found = failing(spark, every_10s("xxxxxx" * 2 + "x....." + "xxxxxx" * 2))

    assert found == [(0, 110), (180, 290)]


@pytest.mark.parametrize("seed", range(3))
def test_sums_of_a_minute_find_the_outages_that_the_single_calls_show(spark, seed):
    dice = random.Random(seed)
    said = [(10 * n, "x" if dice.random() < 0.6 else ".") for n in range(400)]

    assert failing(spark, calls(*said)) == list(_by_hand(said))


def _by_hand(said: list[tuple[int, str]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    is_in_outage = False
    for minute in range(said[-1][0] // 60 + 1):
        of_minute = [one for one in said if one[0] // 60 == minute]
        failed = [second for second, sign in of_minute if sign == "x"]
        is_bad = bool(of_minute) and 2 * len(failed) >= len(of_minute)
        if is_bad and is_in_outage:
            found[-1] = (found[-1][0], failed[-1])
        elif is_bad:
            found.append((failed[0], failed[-1]))
        is_in_outage = is_bad
    return sorted((a, b) for a, b in found if b - a >= 60)


def test_a_circuit_is_open_since_the_first_day_known_if_it_was_open_before(spark):
    yesterday = midnight(day_after(DT, -1))
    changes = [
        {"kind": "circuit_half_opened", "at": yesterday + 50, "was_closed": False},
        {"kind": "circuit_closed", "at": yesterday + 60, "was_closed": False},
        {"kind": "circuit_opened", "at": yesterday + 80, "was_closed": True},
    ]

    found = open_periods(rows(spark, *({"fact_no": n} | one for n, one in enumerate(changes))))

    assert pairs(found, "from_at", "to_at") == [
        (yesterday, yesterday + 60),
        (yesterday + 80, midnight(day_after(DT))),
    ]


def test_a_circuit_that_reopens_was_open_all_the_time_and_closing_twice_changes_nothing(spark):
    kinds = ("opened", "half_opened", "reopened", "half_opened", "closed", "closed")
    changes = [
        {"kind": f"circuit_{kind}", "at": NOON + n, "fact_no": n, "was_closed": n == 0}
        for n, kind in enumerate(kinds)
    ]

    assert pairs(open_periods(rows(spark, *changes)), "from_at", "to_at") == [(NOON, NOON + 4)]


def test_periods_that_nearly_touch_are_one_outage(spark):
    periods = [(HOUR, 2 * HOUR), (0, MINUTE), (MINUTE + 1, 3 * MINUTE), (4 * MINUTE, 5 * MINUTE)]
    longer = [(HOUR + 1, HOUR + 2)]  # within another one
    given = [{"from_at": a, "to_at": b} for a, b in periods + longer]

    assert pairs(merge(rows(spark, *given)), "from_at", "to_at") == [
        (0, 3 * MINUTE),
        (4 * MINUTE, 5 * MINUTE),
        (HOUR, 2 * HOUR),
    ]
