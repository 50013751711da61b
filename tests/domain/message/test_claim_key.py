"""Repeatable claims."""

import pytest
from msgspec.structs import replace

from penstock.domain.errors import ClaimNotRepeatable
from penstock.domain.limits import MINUTE
from penstock.domain.message.claim_key import ClaimResult, repeat
from penstock.domain.message.lifecycle import State
from tests.clocks import NOON
from tests.factories import a_leased_message, a_message

ONE = a_leased_message(message_no=1)
TWO = a_leased_message(message_no=2, lease_no=7)
GIVEN = ClaimResult.of([TWO, ONE])


def again(*found, now=NOON + 1):
    return repeat(GIVEN, {m.message_no: m for m in found}, now=now, lease_ms=5)


def test_a_repeated_claim_returns_the_same_order_and_restarts_the_leases():
    assert again(ONE, TWO) == [replace(TWO, due_at=NOON + 6), replace(ONE, due_at=NOON + 6)]


@pytest.mark.parametrize(
    "touched",
    [
        {"state": State.READY},
        {"state": State.WAITING},
        {"state": State.DEAD},
        {"lease_no": 2},
        {"leased_at": NOON + 1},
        {"due_at": NOON + MINUTE + 1},
        {"started_at": NOON},
        {"progress": "1"},
    ],
)
def test_a_claim_is_not_repeated_once_one_of_its_messages_has_changed(touched):
    with pytest.raises(ClaimNotRepeatable):
        again(replace(ONE, **touched), TWO)


def test_a_claim_is_not_repeated_once_one_of_its_messages_is_gone():
    with pytest.raises(ClaimNotRepeatable):
        again(TWO, a_message(message_no=3))


def test_a_lease_is_over_at_its_last_instant():
    assert len(again(ONE, TWO, now=NOON + MINUTE - 1)) == 2
    with pytest.raises(ClaimNotRepeatable):
        again(ONE, TWO, now=NOON + MINUTE)


def test_a_claim_is_not_repeated_past_the_deadline_of_a_message():
    short = a_leased_message(message_no=1, timeout_ms=3)
    given, found = ClaimResult.of([TWO, short]), {1: short, 2: TWO}

    assert len(repeat(given, found, now=NOON + 2, lease_ms=5)) == 2
    with pytest.raises(ClaimNotRepeatable):
        repeat(given, found, now=NOON + 3, lease_ms=5)
