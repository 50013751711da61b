"""How long one attempt may take: no lease reaches further, and there is no coming back from it."""

import pytest
from msgspec.structs import replace

from penstock.domain import message as lifecycle
from penstock.domain.deadline import deadline
from penstock.domain.errors import LeaseLost
from penstock.domain.history import AttemptOutcome, expiry
from penstock.domain.limits import MINUTE, SECOND
from penstock.domain.message import (
    EXHAUSTED,
    LEASE_EXPIRED,
    TIMED_OUT,
    TOOK_TOO_LONG,
    Message,
    State,
)
from tests.clocks import NOON
from tests.factories import BACKOFF_MS, a_leased_message, a_message, a_queue


def claimed(lease_ms: int = MINUTE, **fields) -> Message:
    return lifecycle.claim(a_message(**fields), now=NOON, lease_ms=lease_ms)


def extended(message: Message, now: int, lease_ms: int = MINUTE, **more) -> Message:
    return lifecycle.extend(message, lease_no=1, now=now, lease_ms=lease_ms, **more)


def test_a_lease_is_cut_short_at_the_deadline():
    assert claimed(timeout_ms=SECOND).due_at == NOON + SECOND


@pytest.mark.parametrize("timeout_ms", [None, MINUTE, MINUTE + 1])
def test_a_deadline_behind_its_end_leaves_a_lease_alone(timeout_ms):
    assert claimed(timeout_ms=timeout_ms).due_at == NOON + MINUTE


def test_an_extension_stops_at_the_deadline():
    message = claimed(timeout_ms=90 * SECOND)

    late = extended(message, NOON + MINUTE)

    assert late.due_at == NOON + 90 * SECOND


def test_time_is_counted_from_the_start_once_the_holder_has_begun():
    message = claimed(timeout_ms=90 * SECOND)

    started = extended(message, NOON + 50 * SECOND, is_start=True)

    assert started.started_at == NOON + 50 * SECOND
    assert deadline(started) == NOON + 140 * SECOND
    assert extended(started, NOON + 2 * MINUTE).due_at == NOON + 140 * SECOND


def test_to_begin_again_gives_no_more_time():
    started = extended(claimed(timeout_ms=90 * SECOND), NOON, is_start=True)

    again = extended(started, NOON + MINUTE, is_start=True)

    assert (again.started_at, again.due_at) == (NOON, NOON + 90 * SECOND)


def test_progress_is_kept_until_something_else_is_said_and_gone_with_the_next_claim():
    told = extended(claimed(), NOON, progress="[1]", is_start=True)
    silent = extended(told, NOON)
    back = lifecycle.release(silent, a_queue(), lease_no=1, now=NOON)
    again = lifecycle.claim(back, now=NOON, lease_ms=MINUTE)

    assert (told.progress, silent.progress, back.progress) == ("[1]", "[1]", "[1]")
    assert (again.progress, again.started_at) == (None, None)


def test_a_lease_that_ran_out_at_the_deadline_is_the_end():
    message = claimed(timeout_ms=SECOND)

    over = lifecycle.expire_lease(message, a_queue(), now=NOON + SECOND)

    assert over == replace(message, state=State.DEAD, reason=TIMED_OUT, last_error=TOOK_TOO_LONG)
    ended = expiry(message, now=NOON + SECOND)
    assert (ended.outcome, ended.error) == (AttemptOutcome.TIMED_OUT, TOOK_TOO_LONG)


def test_a_lease_that_ran_out_sooner_is_only_a_lost_one():
    message = claimed(timeout_ms=2 * MINUTE)

    over = lifecycle.expire_lease(message, a_queue(), now=NOON + 3 * MINUTE)

    assert over.state is State.READY
    ended = expiry(message, now=NOON + 3 * MINUTE)
    assert (ended.outcome, ended.error) == (AttemptOutcome.EXPIRED, LEASE_EXPIRED)


def test_one_that_retries_timeouts_comes_back_until_its_attempts_are_used_up():
    message = claimed(timeout_ms=SECOND, retries_timeouts=True)

    back = lifecycle.expire_lease(message, a_queue(), now=NOON + SECOND)
    last = lifecycle.expire_lease(message, a_queue(max_attempts=1), now=NOON + SECOND)

    assert (back.state, back.attempts) == (State.READY, 1)
    assert (last.state, last.reason, last.last_error) == (State.DEAD, EXHAUSTED, TOOK_TOO_LONG)


def test_a_holder_that_keeps_the_time_itself_ends_it_at_once_with_its_own_words():
    over = lifecycle.time_out(a_leased_message(), a_queue(), lease_no=1, now=NOON, error="no reply")

    assert (over.state, over.reason, over.last_error) == (State.DEAD, TIMED_OUT, "no reply")
    assert over.failures == 0


def test_where_timeouts_are_retried_a_timeout_is_a_failure():
    message = a_leased_message(retries_timeouts=True)

    over = lifecycle.time_out(message, a_queue(), lease_no=1, now=NOON)

    assert over == replace(
        message,
        state=State.WAITING,
        failures=1,
        last_error=TOOK_TOO_LONG,
        due_at=NOON + BACKOFF_MS,
    )


def test_a_timeout_is_for_the_holder_to_say():
    with pytest.raises(LeaseLost):
        lifecycle.time_out(a_leased_message(lease_no=2), a_queue(), lease_no=1, now=NOON)


def test_a_message_that_was_never_claimed_has_no_deadline():
    assert deadline(a_message(timeout_ms=SECOND)) is None
