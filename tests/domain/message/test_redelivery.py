"""Redelivery after a claim: what counts as an attempt, when it is due, and its place."""

import pytest
from msgspec.structs import replace

from penstock.domain.errors import WrongState
from penstock.domain.limits import MINUTE, SECOND
from penstock.domain.message import lifecycle
from penstock.domain.message.lifecycle import (
    EXHAUSTED,
    LEASE_EXPIRED,
    NEXT_ORDER,
    NEXT_POSITION,
    State,
)
from penstock.domain.message.retry import Exponential, Listed
from penstock.domain.queue.group_limit import ADMITTED
from penstock.domain.queue.queue import Ordering, Redelivery
from tests.clocks import NOON
from tests.factories import BACKOFF_MS, a_leased_message, a_message_in, a_queue


def test_a_failure_counts_is_remembered_and_waits_for_the_back_off():
    message = a_leased_message()

    failed = lifecycle.fail(message, a_queue(), lease_no=1, now=NOON + 7, error="boom")

    assert failed == replace(
        message,
        state=State.WAITING,
        failures=1,
        last_error="boom",
        due_at=NOON + 7 + BACKOFF_MS,
    )


def test_the_back_off_grows_with_the_failures_of_the_message():
    queue = a_queue(backoff=Listed((1, 22, 333)))

    due = [
        lifecycle.fail(a_leased_message(failures=n), queue, lease_no=1, now=NOON).due_at - NOON
        for n in range(4)
    ]

    assert due == [1, 22, 333, 333]


def test_the_dice_spread_the_back_off():
    queue = a_queue(backoff=Exponential(first_ms=1_000, jitter=0.5))

    due = [
        lifecycle.fail(a_leased_message(), queue, lease_no=1, now=NOON, dice=dice).due_at - NOON
        for dice in (0.0, 0.5)
    ]

    assert due == [500, 1_000]


def test_a_failing_holder_may_set_the_retry_delay():
    failed = lifecycle.fail(a_leased_message(), a_queue(), lease_no=1, now=NOON, retry_in_ms=SECOND)

    assert (failed.state, failed.due_at) == (State.WAITING, NOON + SECOND)


def test_a_failure_to_be_tried_again_at_once_is_ready():
    failed = lifecycle.fail(a_leased_message(), a_queue(), lease_no=1, now=NOON, retry_in_ms=0)

    assert (failed.state, failed.due_at) == (State.READY, NOON)


@pytest.mark.parametrize(
    ("attempts", "of_the_queue", "its_own", "state"),
    [
        (4, 5, None, State.WAITING),
        (5, 5, None, State.DEAD),
        (6, 5, None, State.DEAD),
        (1, 1, None, State.DEAD),
        (5, 5, 6, State.WAITING),
        (2, 5, 2, State.DEAD),
        (1_000_000, None, None, State.WAITING),
        (3, None, 3, State.DEAD),
    ],
)
def test_a_message_dies_when_its_last_attempt_fails(attempts, of_the_queue, its_own, state):
    message = a_leased_message(attempts=attempts, max_attempts=its_own)
    queue = a_queue(max_attempts=of_the_queue)

    assert lifecycle.fail(message, queue, lease_no=1, now=NOON).state is state


def test_dead_messages_keep_their_last_error_and_reason():
    message = a_leased_message(attempts=5)

    dead = lifecycle.fail(message, a_queue(), lease_no=1, now=NOON, error="boom", retry_in_ms=9)

    assert dead == replace(
        message, state=State.DEAD, failures=1, last_error="boom", reason=EXHAUSTED
    )


def test_a_lease_that_runs_out_counts_as_an_attempt_but_not_as_a_failure():
    message = a_leased_message(due_at=NOON)

    back = lifecycle.expire_lease(message, a_queue(), now=NOON)

    assert back == replace(message, state=State.READY, due_at=NOON)
    assert (back.attempts, back.failures) == (1, 0)


def test_a_lease_runs_out_at_its_last_instant_and_not_before():
    message = a_leased_message(due_at=NOON)

    with pytest.raises(WrongState):
        lifecycle.expire_lease(message, a_queue(), now=NOON - 1)

    assert lifecycle.expire_lease(message, a_queue(), now=NOON).state is State.READY


def test_a_message_dies_when_its_last_lease_runs_out():
    message = a_leased_message(attempts=5, due_at=NOON)

    dead = lifecycle.expire_lease(message, a_queue(), now=NOON)

    assert dead == replace(message, state=State.DEAD, reason=EXHAUSTED, last_error=LEASE_EXPIRED)


@pytest.mark.parametrize("give_back", [lifecycle.release, lifecycle.snooze])
def test_giving_back_unhandled_gives_the_attempt_back(give_back):
    message = a_leased_message(attempts=5, lease_no=9, failures=2)

    back = give_back(message, a_queue(), lease_no=9, now=NOON, delay_ms=SECOND)

    assert back == replace(message, state=State.WAITING, attempts=4, due_at=NOON + SECOND)


@pytest.mark.parametrize(
    ("redelivery", "place"), [(Redelivery.FRONT, 3), (Redelivery.BACK, NEXT_ORDER)]
)
def test_a_redelivered_message_keeps_its_place_or_goes_to_the_back_as_the_queue_is_set(
    redelivery, place
):
    queue = a_queue(redelivery=redelivery)
    message = a_leased_message(order_no=3, due_at=NOON)

    places = {
        lifecycle.fail(message, queue, lease_no=1, now=NOON).order_no,
        lifecycle.release(message, queue, lease_no=1, now=NOON).order_no,
        lifecycle.snooze(message, queue, lease_no=1, now=NOON, delay_ms=1).order_no,
        lifecycle.expire_lease(message, queue, now=NOON).order_no,
    }

    assert places == {place}


def test_in_a_queue_ordered_by_group_only_the_group_goes_to_the_back():
    queue = a_queue(ordering=Ordering.GROUP, redelivery=Redelivery.BACK)
    message = a_leased_message(order_no=3, due_at=NOON, group="a")

    back = lifecycle.expire_lease(message, queue, now=NOON)

    assert (back.order_no, back.fair_position) == (3, NEXT_POSITION)


def test_a_delayed_message_falls_due_at_its_instant_and_not_before():
    message = a_message_in(State.WAITING, due_at=NOON)

    with pytest.raises(WrongState):
        lifecycle.fall_due(message, a_queue(), now=NOON - 1)

    assert lifecycle.fall_due(message, a_queue(), now=NOON).state is State.READY


def test_a_delayed_message_joins_the_line_when_it_falls_due():
    message = a_message_in(State.WAITING, due_at=NOON, order_no=3)

    ready = lifecycle.fall_due(message, a_queue(), now=NOON)

    assert ready == replace(message, state=State.READY, order_no=NEXT_ORDER)


@pytest.mark.parametrize("redelivery", Redelivery)
def test_a_message_that_backed_off_has_its_place_already_when_it_falls_due(redelivery):
    message = a_message_in(State.WAITING, due_at=NOON, order_no=3, first_leased_at=NOON - MINUTE)

    ready = lifecycle.fall_due(message, a_queue(redelivery=redelivery), now=NOON)

    assert ready.order_no == 3


def test_in_a_queue_ordered_by_group_a_delayed_message_keeps_the_place_of_its_sending():
    message = a_message_in(State.WAITING, due_at=NOON, order_no=3)

    ready = lifecycle.fall_due(message, a_queue(ordering=Ordering.GROUP), now=NOON)

    assert ready.order_no == 3


@pytest.mark.parametrize(
    ("due_at", "state"),
    [(NOON - 1, State.READY), (NOON, State.READY), (NOON + 1, State.WAITING)],
)
@pytest.mark.parametrize("was", [State.READY, State.WAITING])
def test_a_new_due_date_decides_whether_the_message_waits(was, due_at, state):
    message = a_message_in(was)

    moved = lifecycle.reschedule(message, due_at=due_at, now=NOON)

    assert moved == replace(message, due_at=due_at, state=state)


def test_a_message_that_waited_for_its_groups_rate_keeps_its_place():
    waiting = a_message_in(State.WAITING, due_at=NOON, order_no=7, gate=ADMITTED, group="a")

    assert lifecycle.fall_due(waiting, a_queue(), now=NOON).order_no == 7
