"""Limits per group: how many messages are admitted, and when each can be claimed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.queue import group_limit
from penstock.domain.queue import rate as pace
from penstock.domain.queue.rate import Rate
from tests.clocks import NOON

THREE = Rate(1, 1_000, 3)


@pytest.mark.parametrize(
    ("max_leased", "rate", "leased", "unclaimed", "room"),
    [
        (2, None, 0, 0, 2),
        (2, None, 1, 0, 1),
        (2, None, 1, 1, 0),
        (2, None, 5, 0, 0),  # the limit was higher once
        (None, THREE, 9, 0, 3),
        (None, THREE, 9, 2, 1),
        (2, THREE, 1, 0, 1),
        (9, THREE, 1, 1, 2),
    ],
)
def test_as_many_are_let_through_as_every_limit_allows(max_leased, rate, leased, unclaimed, room):
    found = group_limit.room(
        max_leased=max_leased, rate=rate, leased=leased, unclaimed=unclaimed, most=100
    )

    assert found == room


def test_without_a_rate_all_can_be_claimed_now():
    bucket = pace.full(THREE, now=NOON)

    assert list(group_limit.instants(None, bucket, unclaimed=5, count=2, now=NOON)) == [NOON, NOON]


def test_with_a_rate_each_waits_until_the_bucket_can_pay_for_all_before_it():
    spent = pace.spend(pace.full(THREE, now=NOON), THREE, 2, now=NOON)

    instants = list(group_limit.instants(THREE, spent, unclaimed=0, count=3, now=NOON))

    assert instants == [NOON, NOON + 1_000, NOON + 2_000]


@given(
    rate=st.builds(
        Rate, st.integers(1, 9), st.sampled_from([7, 100, 1_000]), burst=st.integers(1, 5)
    ),
    waits=st.lists(st.integers(0, 400), max_size=30),
)
def test_claiming_all_admitted_messages_never_exceeds_the_rate(rate, waits):
    """The j-th is let through for when the bucket holds j: so it can always be paid."""
    now, bucket = NOON, pace.full(rate, now=NOON)
    waiting = list(group_limit.instants(rate, bucket, unclaimed=0, count=rate.burst, now=now))
    for wait in waits:
        now += wait
        claimed = [at for at in waiting if at <= now]
        assert len(claimed) <= pace.available(bucket, rate, now=now)
        bucket = pace.spend(bucket, rate, len(claimed), now=now)
        waiting = [at for at in waiting if at > now]
        left = len(waiting)
        waiting += group_limit.instants(rate, bucket, unclaimed=left, count=len(claimed), now=now)
