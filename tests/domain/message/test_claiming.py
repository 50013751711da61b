"""Claims, leases and the lease number that fences them."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from penstock.domain.errors import LeaseLost, WrongState
from penstock.domain.limits import MINUTE, SECOND
from penstock.domain.message import lease as leases
from penstock.domain.message import lifecycle, transfer
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import Message, State
from tests.clocks import NOON
from tests.factories import a_leased_message, a_message, a_queue, an_act


def test_a_claim_leases_the_message_counts_the_attempt_and_names_the_holder():
    before = a_message()

    claimed = lifecycle.claim(before, now=NOON + 5, lease_ms=MINUTE, claimed_by="worker-1")

    assert claimed == replace(
        before,
        state=State.LEASED,
        attempts=1,
        lease_no=1,
        due_at=NOON + 5 + MINUTE,
        leased_at=NOON + 5,
        first_leased_at=NOON + 5,
        leased_by="worker-1",
    )


def test_a_later_claim_leaves_the_instant_of_the_first_one():
    before = a_message(first_leased_at=NOON - MINUTE, leased_at=NOON - MINUTE, leased_by="old")

    claimed = lifecycle.claim(before, now=NOON, lease_ms=MINUTE)

    assert (claimed.first_leased_at, claimed.leased_at) == (NOON - MINUTE, NOON)
    assert claimed.leased_by is None


def test_a_message_behind_an_unfinished_one_of_its_group_cannot_be_claimed():
    with pytest.raises(WrongState):
        lifecycle.claim(a_message(group="a", is_blocked=True), now=NOON, lease_ms=MINUTE)


def test_the_lease_number_grows_with_every_claim_and_nothing_sets_it_back():
    queue = a_queue()
    message = a_message()

    for _ in range(3):
        message = lifecycle.claim(message, now=NOON, lease_ms=MINUTE)
        message = lifecycle.release(message, queue, lease_no=message.lease_no, now=NOON)
    message = transfer.redrive(lifecycle.bury(message), queue, now=NOON)

    assert message.lease_no == 3


@pytest.mark.parametrize("verb", Verb)
@pytest.mark.parametrize("lease_no", [1, 3], ids=["an older lease", "a lease of the future"])
def test_no_act_is_allowed_with_another_lease_than_the_present_one(verb, lease_no):
    message = a_leased_message(lease_no=2)
    act = an_act(verb, replace(message, lease_no=lease_no))

    with pytest.raises(LeaseLost):
        leases.apply(act, message, a_queue())


@pytest.mark.parametrize("verb", Verb)
def test_a_lease_number_given_again_after_a_power_cut_is_not_the_same_lease(verb):
    message = a_leased_message(lease_no=2, leased_at=NOON)
    act = an_act(verb, replace(message, leased_at=NOON - 1))

    with pytest.raises(LeaseLost):
        leases.apply(act, message, a_queue())


@pytest.mark.parametrize("verb", Verb)
def test_the_holder_may_act_late_until_the_message_is_redelivered(verb):
    message = a_leased_message(due_at=NOON)

    after = leases.apply(an_act(verb, message, now=NOON + MINUTE), message, a_queue())

    assert after.state is not State.LEASED or after.due_at > NOON + MINUTE


ACTS: dict[Verb, Callable[[Message], Message]] = {
    Verb.COMPLETE: lambda m: replace(lifecycle.complete(m, lease_no=1), reason="no"),
    Verb.FAIL: lambda m: lifecycle.fail(
        m, a_queue(), lease_no=1, now=NOON, dice=0.25, error="no", retry_in_ms=SECOND
    ),
    Verb.RELEASE: lambda m: lifecycle.release(m, a_queue(), lease_no=1, now=NOON, delay_ms=SECOND),
    Verb.SNOOZE: lambda m: lifecycle.snooze(
        m, a_queue(), lease_no=1, now=NOON, delay_ms=SECOND, reason="no"
    ),
    Verb.EXTEND: lambda m: lifecycle.extend(m, lease_no=1, now=NOON, lease_ms=SECOND),
    Verb.BURY: lambda m: lifecycle.bury(m, lease_no=1, reason="no"),
    Verb.CANCEL: lambda m: lifecycle.cancel(m, lease_no=1, reason="no"),
    Verb.TIME_OUT: lambda m: lifecycle.time_out(
        m, a_queue(), lease_no=1, now=NOON, dice=0.25, error="no", retry_in_ms=SECOND
    ),
    Verb.CRASH: lambda m: lifecycle.crash(m, a_queue(), lease_no=1, now=NOON, error="no"),
}


@pytest.mark.parametrize("verb", Verb)
def test_an_act_as_data_does_what_the_call_does(verb):
    message = a_leased_message()
    act = an_act(verb, message, delay_ms=SECOND, text="no", dice=0.25)

    assert leases.apply(act, message, a_queue()) == ACTS[verb](message)


def test_an_extension_counts_from_now_and_may_shorten_the_lease():
    message = a_leased_message(due_at=NOON + MINUTE)

    extended = lifecycle.extend(message, lease_no=1, now=NOON, lease_ms=SECOND)

    assert extended == replace(message, due_at=NOON + SECOND)


def test_an_extension_without_a_length_takes_the_queues():
    message = a_leased_message()
    queue = a_queue(lease_ms=7 * SECOND)

    extended = leases.apply(an_act(Verb.EXTEND, message), message, queue)

    assert extended.due_at == NOON + 7 * SECOND


def test_an_extension_of_nothing_ends_the_lease_now():
    message = a_leased_message()

    extended = leases.apply(an_act(Verb.EXTEND, message, delay_ms=0), message, a_queue())

    assert extended.due_at == NOON


@pytest.mark.parametrize("verb", [Verb.RELEASE, Verb.SNOOZE])
def test_giving_back_without_a_delay_makes_it_ready_at_once(verb):
    message = a_leased_message()

    after = leases.apply(an_act(verb, message), message, a_queue())

    assert (after.state, after.due_at) == (State.READY, NOON)


def test_a_group_is_claimed_in_a_row_up_to_the_first_unclaimable_message():
    first, second = a_message(group="a"), a_message(group="a", is_blocked=True)
    behind = a_message(group="a", is_blocked=True)
    held = a_leased_message(group="a", is_blocked=True)
    waiting = replace(behind, state=State.WAITING, due_at=NOON + 1)
    expired = replace(behind, expires_at=NOON)

    assert lifecycle.claimable_in_a_row([first, second, behind], now=NOON) == [
        first,
        second,
        behind,
    ]
    for stop in (held, waiting, expired):
        assert lifecycle.claimable_in_a_row([first, second, stop, behind], now=NOON) == [
            first,
            second,
        ]
        assert lifecycle.claimable_in_a_row([stop, behind], now=NOON) == []


def test_a_blocked_message_is_claimed_with_those_before_it_and_stays_blocked():
    claimed = lifecycle.claim(
        a_message(group="a", is_blocked=True), now=NOON, lease_ms=MINUTE, in_a_row=True
    )

    assert (claimed.state, claimed.is_blocked) == (State.LEASED, True)
