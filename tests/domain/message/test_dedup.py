"""When a dedup key that is taken until an event becomes free."""

import pytest
from msgspec.structs import replace

from penstock.domain.limits import MINUTE
from penstock.domain.message import lifecycle, transfer
from penstock.domain.message.dedup import frees_key
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import DedupUntil
from tests.clocks import NOON
from tests.factories import a_leased_message, a_message, a_message_in, a_queue

ENDS = (State.DONE, State.DEAD, State.CANCELLED)


def claimed(message):
    return lifecycle.claim(message, now=NOON, lease_ms=MINUTE)


@pytest.mark.parametrize("until", [None, DedupUntil.CLAIMED, DedupUntil.ENDED])
def test_the_first_claim_frees_only_what_waits_for_it(until):
    message = a_message(dedup_until=until)

    assert frees_key(message, claimed(message)) is (until is DedupUntil.CLAIMED)


@pytest.mark.parametrize("state", ENDS)
@pytest.mark.parametrize("until", [None, DedupUntil.CLAIMED, DedupUntil.ENDED])
def test_ending_while_queued_frees_every_key(until, state):
    message = a_message(dedup_until=until)

    assert frees_key(message, replace(message, state=state)) is (until is not None)


@pytest.mark.parametrize("state", ENDS)
def test_a_key_that_was_freed_by_the_claim_is_not_freed_again(state):
    message = a_leased_message(dedup_until=DedupUntil.CLAIMED)

    assert not frees_key(message, replace(message, state=state))
    assert not frees_key(message, claimed(replace(message, state=State.READY)))


@pytest.mark.parametrize("verb", [lifecycle.release, lifecycle.fail])
def test_coming_back_frees_nothing(verb):
    message = a_leased_message(dedup_until=DedupUntil.ENDED)

    assert not frees_key(message, verb(message, a_queue(), lease_no=1, now=NOON))


def test_to_leave_the_queue_is_an_end_and_the_key_is_not_taken_along():
    message = a_message(dedup_until=DedupUntil.ENDED, dedup_key="k")

    moved = transfer.move(message, a_queue(2), now=NOON)

    assert frees_key(message, moved)
    assert moved.dedup_until is None


def test_the_dead_have_given_theirs_back_when_they_died():
    dead = a_message_in(State.DEAD, dedup_until=DedupUntil.ENDED)

    assert not frees_key(dead, lifecycle.cancel(dead))
    assert transfer.redrive(dead, a_queue(), now=NOON).dedup_until is None
