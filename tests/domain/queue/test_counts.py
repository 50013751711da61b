"""The counters of a queue."""

import pytest

from penstock.domain.queue.queue import Counts

FIELDS = Counts.__struct_fields__


def test_the_books_balance_when_every_arrival_is_alive_or_has_ended():
    counts = Counts(waiting=1, ready=2, leased=3, sent_total=21)

    assert not counts.is_balanced

    counts.add(Counts(done_total=4, dead_total=5, cancelled_total=6))

    assert counts.is_balanced


@pytest.mark.parametrize("name", ["dead", "failed_total", "expired_total", "claimed_total"])
def test_informational_counters_do_not_affect_the_balance(name):
    assert Counts(**{name: 1}).is_balanced


def test_adding_adds_every_field():
    counts = Counts(*range(len(FIELDS)))

    counts.add(Counts(*([10] * len(FIELDS))))

    assert counts == Counts(*range(10, 10 + len(FIELDS)))


def test_the_live_are_those_that_wait_are_ready_or_leased():
    assert Counts(waiting=1, ready=10, leased=100, dead=1_000).live == 111
