"""Messages whose workers crash: retried, and quarantined after too many crashes."""

import pytest
from msgspec.structs import replace

from penstock.domain.errors import LeaseLost
from penstock.domain.message import lifecycle, transfer
from penstock.domain.message.lifecycle import EXHAUSTED, QUARANTINED, WORKER_DIED, State
from tests.clocks import NOON
from tests.factories import a_leased_message, a_message_in, a_queue


def test_a_crash_makes_the_message_ready_and_counts_attempt_and_crash():
    message = a_leased_message()

    crashed = lifecycle.crash(message, a_queue(), lease_no=1, now=NOON + 7, error="signal 9")

    assert crashed == replace(
        message, state=State.READY, due_at=NOON + 7, crashes=1, last_error="signal 9"
    )
    assert crashed.attempts == 1


def test_a_crash_without_a_text_has_a_default_error():
    assert (
        lifecycle.crash(a_leased_message(), a_queue(), lease_no=1, now=NOON).last_error
        == WORKER_DIED
    )


@pytest.mark.parametrize(
    ("crashes", "limit", "state"),
    [(1, 3, State.READY), (2, 3, State.DEAD), (0, 1, State.DEAD), (99, None, State.READY)],
)
def test_a_message_is_quarantined_after_too_many_crashes(crashes, limit, state):
    message = a_leased_message(crashes=crashes)

    crashed = lifecycle.crash(message, a_queue(max_crashes=limit), lease_no=1, now=NOON)

    assert crashed.state is state
    assert crashed.reason == (QUARANTINED if state is State.DEAD else None)


def test_a_crash_on_the_last_attempt_is_the_end():
    queue = a_queue(max_attempts=1)

    crashed = lifecycle.crash(a_leased_message(), queue, lease_no=1, now=NOON)

    assert (crashed.state, crashed.reason) == (State.DEAD, EXHAUSTED)


def test_only_under_the_lease_with_which_the_worker_died():
    with pytest.raises(LeaseLost):
        lifecycle.crash(a_leased_message(lease_no=2), a_queue(), lease_no=1, now=NOON)


def test_a_new_life_begins_without_crashes():
    dead = a_message_in(State.DEAD, crashes=3)

    assert transfer.redrive(dead, a_queue(), now=NOON).crashes == 0
    assert transfer.dead_letter(dead, a_queue(2), now=NOON).crashes == 0
