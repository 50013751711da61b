"""Queues ordered by group: strictly one after the other inside a group, freely between groups."""

import pytest

from penstock.domain.limits import MINUTE
from penstock.domain.message import lifecycle, transfer
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import Ordering
from tests.factories import BACKOFF_MS


@pytest.fixture
def mail(driver):
    return driver.queue("mail", ordering=Ordering.GROUP, lease_ms=MINUTE, max_attempts=2)


def test_one_message_of_each_group_is_claimed_at_a_time(driver, mail):
    a1, b1, a2, b2 = (driver.send(mail, group=group) for group in "abab")

    assert driver.claim_ids(mail) == [a1, b1]
    assert driver.claim_ids(mail) == []
    assert driver.browse_ids(mail, State.READY) == [a2, b2]


def test_messages_without_a_group_do_not_wait_for_each_other(driver, mail):
    ids = [driver.send(mail) for _ in range(3)]

    assert driver.claim_ids(mail) == ids


def test_urgency_does_not_overtake_inside_a_group(driver, mail):
    first, urgent = driver.send(mail, group="a"), driver.send(mail, group="a", priority=-5)

    [held] = driver.claim(mail, 10)
    assert held.id == first

    driver.complete(held)
    assert driver.claim_ids(mail) == [urgent]


def test_each_group_goes_through_its_messages_in_the_order_of_sending(driver, mail):
    sent = [driver.send(mail, group=group) for group in "abcabcabc"]

    rounds = []
    while held := driver.claim(mail, 10):
        rounds.append([message.id for message in held])
        for message in held:
            driver.complete(message)

    assert rounds == [sent[:3], sent[3:6], sent[6:]]


def end_it(driver, mail, how):
    """End the first message of the group in one of the ways a message can end."""
    if how == "expired":
        driver.clock.advance(ms=5)
        return
    if how == "cancelled by an operator":
        driver.alter(driver.sent_ids[0], lambda m, _: lifecycle.cancel(m))
        return
    if how == "buried by an operator":
        driver.alter(driver.sent_ids[0], lambda m, _: lifecycle.bury(m))
        return
    [held] = driver.claim(mail)
    if how == "lost for the last time":
        driver.clock.advance(minutes=1)
        [held] = driver.claim(mail)
        driver.clock.advance(minutes=1)
    elif how == "failed for the last time":
        driver.act(Verb.FAIL, held, delay_ms=0)
        [held] = driver.claim(mail)
        driver.act(Verb.FAIL, held)
    else:
        driver.act(Verb(how), held)


WAYS = [
    "complete",
    "bury",
    "cancel",
    "expired",
    "cancelled by an operator",
    "buried by an operator",
    "lost for the last time",
    "failed for the last time",
]


@pytest.mark.parametrize("how", WAYS)
def test_any_end_of_the_first_message_unblocks_the_next(driver, mail, how):
    driver.send(mail, group="a", expires_in_ms=5 if how == "expired" else None)
    second, third = driver.send(mail, group="a"), driver.send(mail, group="a")

    end_it(driver, mail, how)

    assert driver.claim_ids(mail) == [second]
    assert driver.get(third).is_blocked


@pytest.mark.parametrize("how", ["bury", "lost for the last time", "failed for the last time"])
def test_moving_the_first_message_to_the_dead_letter_queue_unblocks_the_next(driver, how):
    driver.queue("dead")
    mail = driver.queue(
        ordering=Ordering.GROUP, lease_ms=MINUTE, max_attempts=2, dead_letter_queue="dead"
    )
    driver.send(mail, group="a")
    second = driver.send(mail, group="a")

    end_it(driver, mail, how)

    assert driver.claim_ids(mail) == [second]


def test_a_backing_off_first_message_keeps_its_group_waiting_and_no_other(driver, mail):
    first, second = driver.send(mail, group="a"), driver.send(mail, group="a")
    [held] = driver.claim(mail)
    driver.act(Verb.FAIL, held)
    other = driver.send(mail, group="b")

    assert driver.claim_ids(mail) == [other]

    driver.clock.advance(ms=BACKOFF_MS)
    assert driver.claim_ids(mail) == [first]
    assert driver.get(second).is_blocked


@pytest.mark.parametrize("verb", [Verb.RELEASE, Verb.SNOOZE])
def test_a_released_message_is_still_the_first_of_its_group(driver, mail, verb):
    first = driver.send(mail, group="a")
    driver.send(mail, group="a")
    [held] = driver.claim(mail)

    driver.act(verb, held)

    assert driver.claim_ids(mail) == [first]


def test_after_an_expired_lease_the_same_message_is_claimed_and_not_the_next(driver, mail):
    first = driver.send(mail, group="a")
    driver.send(mail, group="a")
    driver.claim(mail)
    driver.clock.advance(minutes=1)

    assert driver.claim_ids(mail) == [first]


def test_a_delayed_first_message_keeps_its_group_waiting(driver, mail):
    first, second = driver.send(mail, group="a", delay_ms=5), driver.send(mail, group="a")

    assert driver.claim_ids(mail) == []

    driver.clock.advance(ms=5)
    [held] = driver.claim(mail, 10)
    assert held.id == first
    driver.complete(held)
    assert driver.claim_ids(mail) == [second]


def test_a_delayed_message_in_the_middle_blocks_those_behind_it(driver, mail):
    first, middle, last = (driver.send(mail, group="a", delay_ms=ms) for ms in (0, 5, 0))
    driver.complete(*driver.claim(mail))

    assert driver.claim_ids(mail) == []

    driver.clock.advance(ms=5)
    [held] = driver.claim(mail, 10)
    assert held.id == middle
    driver.complete(held)
    assert driver.claim_ids(mail) == [last]
    assert driver.find(first) is None


def test_removing_a_message_from_the_middle_keeps_the_order(driver, mail):
    first, middle, last = (driver.send(mail, group="a") for _ in range(3))
    driver.claim(mail)

    driver.alter(middle, lambda m, _: lifecycle.cancel(m))

    assert driver.claim_ids(mail) == []
    driver.complete(driver.get(first))
    assert driver.claim_ids(mail) == [last]


def test_a_redriven_message_comes_after_all_of_its_group(driver, mail):
    first, second = driver.send(mail, group="a"), driver.send(mail, group="a")
    [held] = driver.claim(mail)
    driver.act(Verb.BURY, held)
    [held] = driver.claim(mail)

    driver.alter(first, lambda m, q: transfer.redrive(m, q, now=driver.now))

    assert driver.claim_ids(mail) == []
    driver.complete(driver.get(second))
    assert driver.claim_ids(mail) == [first]


def test_a_redriven_message_that_is_alone_in_its_group_comes_at_once(driver, mail):
    message_id = driver.send(mail, group="a")
    driver.act(Verb.BURY, *driver.claim(mail))

    driver.alter(message_id, lambda m, q: transfer.redrive(m, q, now=driver.now))

    assert driver.claim_ids(mail) == [message_id]


def test_dead_letters_keep_the_order_of_their_group_in_the_dead_letter_queue(driver):
    dead = driver.queue("dead", ordering=Ordering.GROUP)
    mail = driver.queue("mail", ordering=Ordering.GROUP, dead_letter_queue="dead")
    first, second = driver.send(mail, group="a"), driver.send(mail, group="a")
    for _ in range(2):
        driver.act(Verb.BURY, *driver.claim(mail))

    [held] = driver.claim(dead, 10)
    assert held.id == first
    driver.complete(held)
    assert driver.claim_ids(dead) == [second]


def test_dead_letters_redriven_together_keep_their_order(driver):
    dead = driver.queue("dead")
    mail = driver.queue("mail", ordering=Ordering.GROUP, dead_letter_queue="dead")
    ids = [driver.send(mail, group="a") for _ in range(3)]
    for _ in range(3):
        driver.act(Verb.BURY, *driver.claim(mail))

    driver.write(lambda s: s.messages.redrive(dead.queue_no, to=None, limit=10, now=driver.now))

    for message_id in ids:
        [held] = driver.claim(mail, 10)
        assert held.id == message_id
        driver.complete(held)


def test_a_dead_letter_redriven_in_place_goes_behind_its_group(driver):
    dead = driver.queue("dead", ordering=Ordering.GROUP)
    mail = driver.queue("mail", dead_letter_queue="dead")
    letter = driver.send(mail, group="a")
    driver.act(Verb.BURY, *driver.claim(mail))
    second, third = driver.send(dead, group="a"), driver.send(dead, group="a")

    driver.alter(letter, lambda m, q: transfer.redrive(m, q, now=driver.now))
    driver.alter(third, lambda m, _: lifecycle.cancel(m))

    [held] = driver.claim(dead, 10)
    assert held.id == second
    driver.complete(held)
    assert driver.claim_ids(dead) == [letter]


def test_purging_some_of_a_group_frees_the_next(driver, mail):
    ids = [driver.send(mail, group="a") for _ in range(3)]
    driver.claim(mail)

    purged = driver.write(lambda s: s.messages.purge(mail.queue_no, limit=2, now=driver.now))

    assert purged == 2
    [left] = [message_id for message_id in ids if driver.find(message_id)]
    assert not driver.get(left).is_blocked


def test_groups_that_end_in_one_batch_all_move_on(driver, mail):
    ids = [driver.send(mail, group=group) for group in "abcabc"]
    held = driver.claim(mail, 10)

    with driver.together():
        for message, verb in zip(held, (Verb.COMPLETE, Verb.BURY, Verb.CANCEL), strict=True):
            driver.submit_act(verb, message)
        claim = driver.submit_claim(mail, 10)

    assert [m.id for m, _ in claim.result().messages] == ids[3:]
