"""What a claim finds to be due: delays that are over, leases that ran out, messages too old."""

import pytest
from msgspec.structs import replace

from penstock.domain.limits import MINUTE
from penstock.domain.message import lifecycle, transfer
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State

MANY = 520  # more than one step brings back


def test_a_leased_message_stays_hidden_until_its_lease_runs_out(desk):
    mail = desk.queue(lease_ms=MINUTE)
    desk.send(mail)
    [first] = desk.claim(mail)

    desk.clock.advance(ms=MINUTE - 1)
    assert desk.claim(mail) == []

    desk.clock.advance(ms=1)
    [second] = desk.claim(mail)
    back = lifecycle.expire_lease(first, mail, now=desk.now)
    assert second == lifecycle.claim(back, now=desk.now, lease_ms=MINUTE)
    assert (second.attempts, second.lease_no) == (2, 2)
    assert desk.counts(mail).expired_total == 1


def test_a_message_whose_last_lease_runs_out_is_dead(desk):
    mail = desk.queue(max_attempts=1, lease_ms=MINUTE)
    desk.send(mail)
    [held] = desk.claim(mail)
    desk.clock.advance(minutes=1)

    assert desk.claim(mail) == []

    assert desk.get(held.id) == lifecycle.expire_lease(held, mail, now=desk.now)
    assert desk.counts(mail).dead == 1


def test_a_message_whose_last_lease_runs_out_goes_to_the_dead_letter_queue(desk):
    dead = desk.queue("dead")
    mail = desk.queue(max_attempts=1, lease_ms=MINUTE, dead_letter_queue="dead")
    desk.send(mail)
    [held] = desk.claim(mail)
    desk.clock.advance(minutes=1)

    assert desk.claim(mail) == []

    died = lifecycle.expire_lease(held, mail, now=desk.now)
    letter = desk.get(held.id)
    expected = transfer.dead_letter(died, dead, now=desk.now)
    assert letter == replace(expected, order_no=letter.order_no)
    assert desk.claim_ids(dead) == [held.id]


def test_delayed_messages_join_the_line_in_the_order_of_their_due_dates(desk):
    mail = desk.queue()
    late = desk.send(mail, delay_ms=3)
    soon = desk.send(mail, delay_ms=1)
    same = desk.send(mail, delay_ms=1)
    first = desk.send(mail)
    assert desk.claim_ids(mail, 1) == [first]
    now = desk.send(mail)

    desk.clock.advance(ms=3)

    assert desk.claim_ids(mail) == [now, soon, same, late]


def test_a_delayed_message_is_claimed_at_its_instant_and_not_before(desk):
    mail = desk.queue()
    message_id = desk.send(mail, delay_ms=2)

    desk.clock.advance(ms=1)
    assert desk.claim(mail) == []

    desk.clock.advance(ms=1)
    assert desk.claim_ids(mail) == [message_id]


@pytest.mark.parametrize("how", ["lease", "release", "fail"])
@pytest.mark.parametrize("redelivery", ["front", "back"])
def test_what_comes_back_stands_where_the_queue_says(desk, redelivery, how):
    mail = desk.queue(redelivery=redelivery, lease_ms=1)
    old, young = desk.send(mail), desk.send(mail)
    [held] = desk.claim(mail)
    if how == "release":
        desk.act(Verb.RELEASE, held)
    if how == "fail":
        desk.act(Verb.FAIL, held, delay_ms=1)
    newest = desk.send(mail)
    desk.clock.advance(ms=1)

    claimed = desk.claim_ids(mail)

    # At the back is behind all that wait at that moment: a lease is only found run out by the
    # claim, while those who give back do so before the newest comes.
    at_the_back = [young, newest, old] if how == "lease" else [young, old, newest]
    assert claimed == ([old, young, newest] if redelivery == "front" else at_the_back)


def test_urgency_counts_more_than_the_place_in_line_for_what_comes_back_too(desk):
    mail = desk.queue(redelivery="back", lease_ms=1)
    urgent, other = desk.send(mail, priority=-1), desk.send(mail)
    desk.claim(mail)
    desk.clock.advance(ms=1)

    assert desk.claim_ids(mail) == [urgent, other]


@pytest.mark.parametrize("delay_ms", [0, 1], ids=["ready", "waiting"])
def test_a_message_too_old_to_be_of_use_is_cancelled_and_not_delivered(desk, delay_ms):
    mail = desk.queue()
    message_id = desk.send(mail, delay_ms=delay_ms, expires_in_ms=5)
    desk.clock.advance(ms=5)

    assert desk.claim(mail) == []

    assert desk.find(message_id) is None
    [ending] = desk.endings()
    assert (ending.outcome, ending.reason) == (State.CANCELLED, "expired")


def test_a_message_is_delivered_up_to_the_instant_before_it_expires(desk):
    mail = desk.queue()
    message_id = desk.send(mail, expires_in_ms=5)
    desk.clock.advance(ms=4)

    assert desk.claim_ids(mail) == [message_id]


def test_a_message_that_expired_in_the_hands_of_a_lost_worker_is_not_delivered_again(desk):
    mail = desk.queue(lease_ms=MINUTE)
    message_id = desk.send(mail, expires_in_ms=5)
    desk.claim(mail)
    desk.clock.advance(minutes=1)

    assert desk.claim(mail) == []

    [ending] = desk.endings()
    assert (ending.id, ending.outcome, ending.reason) == (message_id, State.CANCELLED, "expired")
    assert [a.outcome for a in desk.attempts(message_id)] == ["expired"]


def test_a_message_that_comes_back_too_old_is_not_delivered_again(desk):
    mail = desk.queue()
    desk.send(mail, expires_in_ms=5)
    [held] = desk.claim(mail)
    desk.clock.advance(ms=5)
    desk.act(Verb.RELEASE, held)

    assert desk.claim(mail) == []

    assert desk.counts(mail).cancelled_total == 1


def test_any_number_of_messages_may_fall_due_at_once(desk):
    mail = desk.queue()
    ids = desk.send_many(mail, MANY, delay_ms=1)
    desk.clock.advance(ms=1)

    assert desk.claim_ids(mail, MANY) == ids


def test_a_crowd_of_dead_ones_does_not_hide_the_living(desk):
    mail = desk.queue(max_attempts=1, lease_ms=1)
    desk.send_many(mail, MANY)
    desk.claim(mail, MANY)
    desk.clock.advance(ms=1)
    living = desk.send(mail, delay_ms=1)
    desk.clock.advance(ms=1)

    assert desk.claim_ids(mail) == [living]

    assert desk.counts(mail).dead == MANY


def test_a_crowd_of_expired_ones_does_not_hide_the_living(desk):
    mail = desk.queue()
    desk.send_many(mail, MANY, expires_in_ms=1)
    living = desk.send(mail)
    desk.clock.advance(ms=1)

    assert desk.claim_ids(mail) == [living]

    assert desk.claim_ids(mail) == []
    assert desk.counts(mail).cancelled_total == MANY
