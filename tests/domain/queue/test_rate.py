"""Rates: a bucket never allows more than its rate, and never less."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.errors import InvalidRequest
from penstock.domain.queue import rate as pace
from penstock.domain.queue.rate import Rate, check_rate
from tests.clocks import NOON

RATES = st.builds(
    Rate,
    limit=st.integers(1, 50),
    per_ms=st.sampled_from([1, 7, 100, 1_000, 60_000]),
    burst=st.integers(1, 20),
)


def test_after_a_pause_a_burst_may_come_at_once_and_no_more():
    rate = Rate(10, 1_000, 3)
    bucket = pace.full(rate, now=NOON)

    assert pace.available(bucket, rate, now=NOON) == 3
    assert pace.available(bucket, rate, now=NOON + 3_600_000) == 3


def test_after_the_burst_messages_come_at_the_rate():
    rate = Rate(10, 1_000, 3)
    spent = pace.spend(pace.full(rate, now=NOON), rate, 3, now=NOON)

    assert pace.available(spent, rate, now=NOON + 99) == 0
    assert pace.available(spent, rate, now=NOON + 100) == 1
    assert pace.available_at(spent, rate, 1, now=NOON) == NOON + 100
    assert pace.available_at(spent, rate, 3, now=NOON) == NOON + 300
    assert pace.full_at(spent, rate) == NOON + 300


def test_a_clock_that_goes_back_gives_nothing():
    rate = Rate(1, 1_000)
    spent = pace.spend(pace.full(rate, now=NOON), rate, 1, now=NOON)

    assert pace.available(spent, rate, now=NOON - 5_000) == 0
    assert pace.spend(spent, rate, 0, now=NOON - 5_000).credited_at == NOON


@given(rate=RATES, waits=st.lists(st.integers(0, 5_000), max_size=30), wish=st.integers(1, 30))
def test_in_no_time_more_come_than_the_rate_and_a_burst(rate, waits, wish):
    now, bucket = NOON, pace.full(rate, now=NOON)
    taken = []
    for wait in waits:
        now += wait
        count = min(wish, pace.available(bucket, rate, now=now))
        bucket = pace.spend(bucket, rate, count, now=now)
        taken.append((now, count))
    for i, (start, _) in enumerate(taken):
        total = 0
        for at, count in taken[i:]:
            total += count
            assert total * rate.per_ms <= rate.burst * rate.per_ms + (at - start) * rate.limit


@given(rate=RATES, count=st.integers(1, 20), spent=st.integers(0, 20))
def test_messages_may_be_claimed_at_the_announced_instant_and_not_before(rate, count, spent):
    count, spent = min(count, rate.burst), min(spent, rate.burst)
    bucket = pace.spend(pace.full(rate, now=NOON), rate, spent, now=NOON)

    at = pace.available_at(bucket, rate, count, now=NOON)

    assert pace.available(bucket, rate, now=at) >= count
    assert at == NOON or pace.available(bucket, rate, now=at - 1) < count


@pytest.mark.parametrize(
    ("rate", "named"),
    [
        (Rate(0), "limit"),
        (Rate(1_000_001), "limit"),
        (Rate(1, 0), "per_ms"),
        (Rate(1, 1, 0), "burst"),
        (Rate(1, 1, 11), "burst"),
    ],
)
def test_a_rate_out_of_range_is_refused_by_name(rate, named):
    with pytest.raises(InvalidRequest, match=f"rate.{named} must be from 1"):
        check_rate("rate", rate, most_burst=10)


def test_no_rate_is_fine():
    check_rate("rate", None, most_burst=10)
