"""What a claim brings back: delays that are over, expired leases, expired messages."""

import pytest
from msgspec.structs import replace

from penstock.domain.limits import MINUTE
from penstock.domain.message import lifecycle, transfer
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State

MANY = 520  # more than one step brings back


def test_a_leased_message_stays_hidden_until_its_lease_expires(driver):
    mail = driver.queue(lease_ms=MINUTE)
    driver.send(mail)
    [first] = driver.claim(mail)

    driver.clock.advance(ms=MINUTE - 1)
    assert driver.claim(mail) == []

    driver.clock.advance(ms=1)
    [second] = driver.claim(mail)
    back = lifecycle.expire_lease(first, mail, now=driver.now)
    assert second == lifecycle.claim(back, now=driver.now, lease_ms=MINUTE)
    assert (second.attempts, second.lease_no) == (2, 2)
    assert driver.counts(mail).expired_total == 1


def test_a_message_whose_last_lease_runs_out_is_dead(driver):
    mail = driver.queue(max_attempts=1, lease_ms=MINUTE)
    driver.send(mail)
    [held] = driver.claim(mail)
    driver.clock.advance(minutes=1)

    assert driver.claim(mail) == []

    assert driver.get(held.id) == lifecycle.expire_lease(held, mail, now=driver.now)
    assert driver.counts(mail).dead == 1


def test_a_message_whose_last_lease_runs_out_goes_to_the_dead_letter_queue(driver):
    dead = driver.queue("dead")
    mail = driver.queue(max_attempts=1, lease_ms=MINUTE, dead_letter_queue="dead")
    driver.send(mail)
    [held] = driver.claim(mail)
    driver.clock.advance(minutes=1)

    assert driver.claim(mail) == []

    died = lifecycle.expire_lease(held, mail, now=driver.now)
    letter = driver.get(held.id)
    expected = transfer.dead_letter(died, dead, now=driver.now)
    assert letter == replace(expected, order_no=letter.order_no)
    assert driver.claim_ids(dead) == [held.id]


def test_delayed_messages_become_ready_in_the_order_of_their_due_dates(driver):
    mail = driver.queue()
    late = driver.send(mail, delay_ms=3)
    soon = driver.send(mail, delay_ms=1)
    same = driver.send(mail, delay_ms=1)
    first = driver.send(mail)
    assert driver.claim_ids(mail, 1) == [first]
    now = driver.send(mail)

    driver.clock.advance(ms=3)

    assert driver.claim_ids(mail) == [now, soon, same, late]


def test_a_delayed_message_is_claimed_at_its_instant_and_not_before(driver):
    mail = driver.queue()
    message_id = driver.send(mail, delay_ms=2)

    driver.clock.advance(ms=1)
    assert driver.claim(mail) == []

    driver.clock.advance(ms=1)
    assert driver.claim_ids(mail) == [message_id]


@pytest.mark.parametrize("how", ["lease", "release", "fail"])
@pytest.mark.parametrize("redelivery", ["front", "back"])
def test_a_redelivered_message_is_placed_where_the_queue_says(driver, redelivery, how):
    mail = driver.queue(redelivery=redelivery, lease_ms=1)
    old, young = driver.send(mail), driver.send(mail)
    [held] = driver.claim(mail)
    if how == "release":
        driver.act(Verb.RELEASE, held)
    if how == "fail":
        driver.act(Verb.FAIL, held, delay_ms=1)
    newest = driver.send(mail)
    driver.clock.advance(ms=1)

    claimed = driver.claim_ids(mail)

    # The back is behind all messages at that moment: an expired lease is found only by the claim,
    # while a release happens before the newest message is sent.
    at_the_back = [young, newest, old] if how == "lease" else [young, old, newest]
    assert claimed == ([old, young, newest] if redelivery == "front" else at_the_back)


def test_priority_precedes_place_for_redelivered_messages_too(driver):
    mail = driver.queue(redelivery="back", lease_ms=1)
    urgent, other = driver.send(mail, priority=-1), driver.send(mail)
    driver.claim(mail)
    driver.clock.advance(ms=1)

    assert driver.claim_ids(mail) == [urgent, other]


@pytest.mark.parametrize("delay_ms", [0, 1], ids=["ready", "waiting"])
def test_an_expired_message_is_cancelled_and_not_delivered(driver, delay_ms):
    mail = driver.queue()
    message_id = driver.send(mail, delay_ms=delay_ms, expires_in_ms=5)
    driver.clock.advance(ms=5)

    assert driver.claim(mail) == []

    assert driver.find(message_id) is None
    [ending] = driver.endings()
    assert (ending.outcome, ending.reason) == (State.CANCELLED, "expired")


def test_a_message_is_delivered_up_to_the_instant_before_it_expires(driver):
    mail = driver.queue()
    message_id = driver.send(mail, expires_in_ms=5)
    driver.clock.advance(ms=4)

    assert driver.claim_ids(mail) == [message_id]


def test_a_message_that_expired_while_leased_to_a_lost_worker_is_not_delivered_again(driver):
    mail = driver.queue(lease_ms=MINUTE)
    message_id = driver.send(mail, expires_in_ms=5)
    driver.claim(mail)
    driver.clock.advance(minutes=1)

    assert driver.claim(mail) == []

    [ending] = driver.endings()
    assert (ending.id, ending.outcome, ending.reason) == (message_id, State.CANCELLED, "expired")
    assert [a.outcome for a in driver.attempts(message_id)] == ["expired"]


def test_a_message_that_comes_back_too_old_is_not_delivered_again(driver):
    mail = driver.queue()
    driver.send(mail, expires_in_ms=5)
    [held] = driver.claim(mail)
    driver.clock.advance(ms=5)
    driver.act(Verb.RELEASE, held)

    assert driver.claim(mail) == []

    assert driver.counts(mail).cancelled_total == 1


def test_any_number_of_messages_may_fall_due_at_once(driver):
    mail = driver.queue()
    ids = driver.send_many(mail, MANY, delay_ms=1)
    driver.clock.advance(ms=1)

    assert driver.claim_ids(mail, MANY) == ids


def test_many_dead_messages_do_not_hide_live_ones(driver):
    mail = driver.queue(max_attempts=1, lease_ms=1)
    driver.send_many(mail, MANY)
    driver.claim(mail, MANY)
    driver.clock.advance(ms=1)
    living = driver.send(mail, delay_ms=1)
    driver.clock.advance(ms=1)

    assert driver.claim_ids(mail) == [living]

    assert driver.counts(mail).dead == MANY


def test_many_expired_messages_do_not_hide_live_ones(driver):
    mail = driver.queue()
    driver.send_many(mail, MANY, expires_in_ms=1)
    living = driver.send(mail)
    driver.clock.advance(ms=1)

    assert driver.claim_ids(mail) == [living]

    assert driver.claim_ids(mail) == []
    assert driver.counts(mail).cancelled_total == MANY
