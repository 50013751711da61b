"""How long one attempt may take: a holder that reports late is timed out, a silent one is lost."""

import pytest
from msgspec.structs import replace

from penstock.domain.errors import LeaseLost
from penstock.domain.limits import MINUTE, SECOND
from penstock.domain.message import lease as leases
from penstock.domain.message import lifecycle
from penstock.domain.message.lease import Verb, deadline, is_overdue
from penstock.domain.message.lifecycle import EXHAUSTED, TIMED_OUT, TOOK_TOO_LONG, Message, State
from tests.clocks import NOON
from tests.factories import BACKOFF_MS, a_leased_message, a_message, a_queue, an_act


def claimed(lease_ms: int = MINUTE, **fields) -> Message:
    return lifecycle.claim(a_message(**fields), now=NOON, lease_ms=lease_ms)


def extended(message: Message, now: int, lease_ms: int = MINUTE, **more) -> Message:
    return lifecycle.extend(message, lease_no=1, now=now, lease_ms=lease_ms, **more)


def asked_to_extend(message: Message, now: int, **more) -> Message:
    """What becomes of it in a store."""
    act = leases.as_noticed(an_act(Verb.EXTEND, message, now=now, **more), message)
    return leases.apply(act, message, a_queue())


@pytest.mark.parametrize("timeout_ms", [None, 1, MINUTE, MINUTE + 1])
def test_a_deadline_cuts_no_lease_short(timeout_ms):
    message = claimed(timeout_ms=timeout_ms)

    assert message.due_at == NOON + MINUTE
    assert extended(message, NOON).due_at == NOON + MINUTE


def test_time_is_over_at_its_last_instant():
    message = claimed(timeout_ms=SECOND)

    assert deadline(message) == NOON + SECOND
    assert not is_overdue(message, now=NOON + SECOND - 1)
    assert is_overdue(message, now=NOON + SECOND)


def test_time_is_counted_from_the_start_once_the_holder_has_begun():
    message = claimed(timeout_ms=90 * SECOND)

    started = extended(message, NOON + 50 * SECOND, is_start=True)

    assert started.started_at == NOON + 50 * SECOND
    assert deadline(started) == NOON + 140 * SECOND


def test_to_begin_again_gives_no_more_time():
    started = extended(claimed(timeout_ms=90 * SECOND), NOON, is_start=True)

    again = extended(started, NOON + MINUTE, is_start=True)

    assert (again.started_at, deadline(again)) == (NOON, NOON + 90 * SECOND)


def test_progress_is_kept_until_it_is_replaced_or_the_message_is_claimed_again():
    extension = extended(claimed(), NOON, progress="[1]", is_start=True)
    silent = extended(extension, NOON)
    back = lifecycle.release(silent, a_queue(), lease_no=1, now=NOON)
    again = lifecycle.claim(back, now=NOON, lease_ms=MINUTE)

    assert (extension.progress, silent.progress, back.progress) == ("[1]", "[1]", "[1]")
    assert (again.progress, again.started_at) == (None, None)


def test_an_extension_at_the_deadline_is_a_timeout():
    message = claimed(timeout_ms=SECOND)

    in_time = asked_to_extend(message, NOON + SECOND - 1, delay_ms=MINUTE)
    over = asked_to_extend(message, NOON + SECOND, delay_ms=MINUTE, progress="[1]")

    assert (in_time.state, in_time.due_at) == (State.LEASED, NOON + SECOND - 1 + MINUTE)
    assert over == replace(message, state=State.DEAD, reason=TIMED_OUT, last_error=TOOK_TOO_LONG)


def test_where_timeouts_are_retried_it_backs_off_and_not_for_as_long_as_the_lease_it_wanted():
    message = claimed(timeout_ms=SECOND, retries_timeouts=True)

    over = asked_to_extend(message, NOON + SECOND, delay_ms=7)

    assert (over.state, over.failures) == (State.WAITING, 1)
    assert over.due_at == NOON + SECOND + BACKOFF_MS


def test_only_the_first_start_resets_the_time_limit():
    message = claimed(timeout_ms=SECOND)

    begun = asked_to_extend(message, NOON + SECOND, is_start=True)
    again = asked_to_extend(begun, NOON + 2 * SECOND, is_start=True)

    assert (begun.state, deadline(begun)) == (State.LEASED, NOON + 2 * SECOND)
    assert again.state is State.DEAD


def test_a_redelivered_message_is_not_timed_out_by_its_last_holder():
    back = lifecycle.expire_lease(claimed(timeout_ms=SECOND), a_queue(), now=NOON + MINUTE)

    with pytest.raises(LeaseLost):
        asked_to_extend(back, NOON + MINUTE, is_late_ok=True)


def test_a_stale_holder_cannot_time_out_a_message():
    message = claimed(timeout_ms=SECOND)
    stale = an_act(Verb.EXTEND, replace(message, lease_no=0), now=NOON + SECOND)

    with pytest.raises(LeaseLost):
        leases.apply(leases.as_noticed(stale, message), message, a_queue())


@pytest.mark.parametrize("verb", [v for v in Verb if v is not Verb.EXTEND])
def test_all_that_ends_a_lease_is_taken_past_the_deadline_for_what_it_is(verb):
    message = claimed(timeout_ms=SECOND)
    act = an_act(verb, message, now=NOON + 2 * SECOND)

    assert leases.as_noticed(act, message) is act


@pytest.mark.parametrize("retries_timeouts", [False, True])
def test_a_silent_holder_is_lost_and_not_late(retries_timeouts):
    message = claimed(timeout_ms=SECOND, retries_timeouts=retries_timeouts)

    back = lifecycle.expire_lease(message, a_queue(), now=NOON + MINUTE)
    last = lifecycle.expire_lease(message, a_queue(max_attempts=1), now=NOON + MINUTE)

    assert (back.state, back.attempts, back.failures) == (State.READY, 1, 0)
    assert (last.state, last.reason) == (State.DEAD, EXHAUSTED)


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
