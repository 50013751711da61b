"""Expiry, burial, dead letters and redrives."""

import pytest
from msgspec.structs import replace

from penstock.domain.errors import WrongState
from penstock.domain.limits import HOUR, MINUTE
from penstock.domain.message import lifecycle, transfer
from penstock.domain.message.lifecycle import EXPIRED, NEXT_ORDER, State
from tests.clocks import NOON
from tests.factories import a_leased_message, a_message, a_message_in, a_queue


@pytest.mark.parametrize(
    ("expires_at", "is_expired"), [(NOON - 1, True), (NOON, True), (NOON + 1, False), (None, False)]
)
@pytest.mark.parametrize("state", [State.WAITING, State.READY])
def test_a_message_expires_at_its_last_instant(state, expires_at, is_expired):
    message = a_message_in(state, expires_at=expires_at)

    assert lifecycle.is_expired(message, now=NOON) is is_expired


def test_an_expired_message_can_no_longer_be_claimed():
    with pytest.raises(WrongState):
        lifecycle.claim(a_message(expires_at=NOON), now=NOON, lease_ms=MINUTE)


def test_a_message_may_be_claimed_up_to_the_instant_before_it_expires():
    claimed = lifecycle.claim(a_message(expires_at=NOON + 1), now=NOON, lease_ms=MINUTE)

    assert claimed.state is State.LEASED


def test_expiry_cancels_and_says_so():
    message = a_message(expires_at=NOON)

    ended = lifecycle.expire(message, now=NOON)

    assert ended == replace(message, state=State.CANCELLED, reason=EXPIRED)


@pytest.mark.parametrize(
    "message",
    [
        a_message(expires_at=NOON + 1),
        a_message(expires_at=None),
        a_leased_message(expires_at=NOON),
        a_message_in(State.DEAD, expires_at=NOON),
    ],
    ids=["not yet", "never", "leased", "dead already"],
)
def test_nothing_else_expires(message):
    with pytest.raises(WrongState):
        lifecycle.expire(message, now=NOON)


def test_a_holder_may_complete_a_message_that_expired_in_its_hands():
    message = a_leased_message(expires_at=NOON - MINUTE)

    assert lifecycle.complete(message, lease_no=1).state is State.DONE


@pytest.mark.parametrize(
    ("retention_ms", "wanted", "expires_at"),
    [
        (None, None, None),
        (None, NOON + HOUR, NOON + HOUR),
        (MINUTE, None, NOON + MINUTE),
        (MINUTE, NOON + HOUR, NOON + MINUTE),
        (HOUR, NOON + MINUTE, NOON + MINUTE),
    ],
)
def test_the_sooner_of_the_senders_wish_and_the_queues_rule_counts(
    retention_ms, wanted, expires_at
):
    queue = a_queue(retention_ms=retention_ms)

    assert transfer.expiry(queue, now=NOON, wanted=wanted) == expires_at


def test_a_dead_letter_that_is_handled_drops_the_reason_of_its_death():
    letter = a_leased_message(queue_no=2, dead_from=1, reason="broken")

    assert lifecycle.complete(letter, lease_no=1) == replace(letter, state=State.DONE, reason=None)


def test_burying_keeps_everything_but_the_state_and_the_reason():
    message = a_leased_message(last_error="boom", failures=1)

    buried = lifecycle.bury(message, lease_no=1, reason="makes no sense")

    assert buried == replace(message, state=State.DEAD, reason="makes no sense")


def test_cancelling_says_why():
    message = a_message()

    cancelled = lifecycle.cancel(message, reason="not wanted any more")

    assert cancelled == replace(message, state=State.CANCELLED, reason="not wanted any more")


def test_a_dead_message_that_is_cancelled_keeps_the_reason_of_its_death():
    message = a_message_in(State.DEAD, reason="broken")

    assert lifecycle.cancel(message, reason="tidying up").reason == "broken"


def test_a_dead_letter_starts_afresh_in_its_new_queue_and_remembers_where_and_why_it_died():
    dead = a_message_in(
        State.DEAD, attempts=5, failures=4, lease_no=5, last_error="boom", expires_at=NOON + 1
    )

    letter = transfer.dead_letter(dead, a_queue(2, "dead", retention_ms=HOUR), now=NOON)

    assert letter == replace(
        dead,
        queue_no=2,
        state=State.READY,
        order_no=NEXT_ORDER,
        due_at=NOON,
        expires_at=NOON + HOUR,
        attempts=0,
        failures=0,
        dead_from=1,
        reason="broken",
    )


def test_a_redriven_message_starts_afresh_behind_all_that_wait():
    dead = a_message_in(
        State.DEAD, attempts=5, failures=4, lease_no=5, last_error="boom", expires_at=NOON + 1
    )

    redriven = transfer.redrive(dead, a_queue(), now=NOON + MINUTE)

    assert redriven == replace(
        dead,
        state=State.READY,
        order_no=NEXT_ORDER,
        due_at=NOON + MINUTE,
        expires_at=None,
        attempts=0,
        failures=0,
        reason=None,
    )


@pytest.mark.parametrize("state", [State.WAITING, State.READY])
def test_a_queued_dead_letter_can_be_redriven_to_its_origin(state):
    letter = a_message_in(state, queue_no=2, dead_from=1)

    redriven = transfer.redrive(letter, a_queue(), now=NOON)

    assert (redriven.queue_no, redriven.dead_from, redriven.state) == (1, None, State.READY)


@pytest.mark.parametrize(
    "message",
    [a_message(), a_message_in(State.WAITING), a_leased_message(queue_no=2, dead_from=1)],
    ids=["never died", "never died either", "a leased dead letter"],
)
def test_nothing_else_can_be_redriven(message):
    with pytest.raises(WrongState):
        transfer.redrive(message, a_queue(), now=NOON)
