"""Queues ordered by group: strictly one after the other inside a group, freely between groups."""

import pytest

from penstock.domain.limits import MINUTE
from penstock.domain.message import lifecycle, transfer
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import Ordering
from tests.factories import BACKOFF_MS


@pytest.fixture
def mail(desk):
    return desk.queue("mail", ordering=Ordering.GROUP, lease_ms=MINUTE, max_attempts=2)


def test_one_message_of_each_group_is_claimed_at_a_time(desk, mail):
    a1, b1, a2, b2 = (desk.send(mail, group=group) for group in "abab")

    assert desk.claim_ids(mail) == [a1, b1]
    assert desk.claim_ids(mail) == []
    assert desk.browse_ids(mail, State.READY) == [a2, b2]


def test_messages_without_a_group_do_not_wait_for_each_other(desk, mail):
    ids = [desk.send(mail) for _ in range(3)]

    assert desk.claim_ids(mail) == ids


def test_urgency_does_not_overtake_inside_a_group(desk, mail):
    first, urgent = desk.send(mail, group="a"), desk.send(mail, group="a", priority=-5)

    [held] = desk.claim(mail, 10)
    assert held.id == first

    desk.complete(held)
    assert desk.claim_ids(mail) == [urgent]


def test_each_group_goes_through_its_messages_in_the_order_of_sending(desk, mail):
    sent = [desk.send(mail, group=group) for group in "abcabcabc"]

    rounds = []
    while held := desk.claim(mail, 10):
        rounds.append([message.id for message in held])
        for message in held:
            desk.complete(message)

    assert rounds == [sent[:3], sent[3:6], sent[6:]]


def end_it(desk, mail, how):
    """End the first message of the group in one of the ways a message can end."""
    if how == "expired":
        desk.clock.advance(ms=5)
        return
    if how == "cancelled by an operator":
        desk.alter(desk.sent_ids[0], lambda m, _: lifecycle.cancel(m))
        return
    if how == "buried by an operator":
        desk.alter(desk.sent_ids[0], lambda m, _: lifecycle.bury(m))
        return
    [held] = desk.claim(mail)
    if how == "lost for the last time":
        desk.clock.advance(minutes=1)
        [held] = desk.claim(mail)
        desk.clock.advance(minutes=1)
    elif how == "failed for the last time":
        desk.act(Verb.FAIL, held, delay_ms=0)
        [held] = desk.claim(mail)
        desk.act(Verb.FAIL, held)
    else:
        desk.act(Verb(how), held)


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
def test_the_next_comes_when_the_first_has_ended_in_whatever_way(desk, mail, how):
    desk.send(mail, group="a", expires_in_ms=5 if how == "expired" else None)
    second, third = desk.send(mail, group="a"), desk.send(mail, group="a")

    end_it(desk, mail, how)

    assert desk.claim_ids(mail) == [second]
    assert desk.get(third).is_blocked


@pytest.mark.parametrize("how", ["bury", "lost for the last time", "failed for the last time"])
def test_the_next_comes_when_the_first_has_moved_to_the_dead_letter_queue(desk, how):
    desk.queue("dead")
    mail = desk.queue(
        ordering=Ordering.GROUP, lease_ms=MINUTE, max_attempts=2, dead_letter_queue="dead"
    )
    desk.send(mail, group="a")
    second = desk.send(mail, group="a")

    end_it(desk, mail, how)

    assert desk.claim_ids(mail) == [second]


def test_a_backing_off_first_message_keeps_its_group_waiting_and_no_other(desk, mail):
    first, second = desk.send(mail, group="a"), desk.send(mail, group="a")
    [held] = desk.claim(mail)
    desk.act(Verb.FAIL, held)
    other = desk.send(mail, group="b")

    assert desk.claim_ids(mail) == [other]

    desk.clock.advance(ms=BACKOFF_MS)
    assert desk.claim_ids(mail) == [first]
    assert desk.get(second).is_blocked


@pytest.mark.parametrize("verb", [Verb.RELEASE, Verb.SNOOZE])
def test_a_message_given_back_is_still_the_first_of_its_group(desk, mail, verb):
    first = desk.send(mail, group="a")
    desk.send(mail, group="a")
    [held] = desk.claim(mail)

    desk.act(verb, held)

    assert desk.claim_ids(mail) == [first]


def test_after_a_lost_lease_the_same_message_comes_again_and_not_the_next(desk, mail):
    first = desk.send(mail, group="a")
    desk.send(mail, group="a")
    desk.claim(mail)
    desk.clock.advance(minutes=1)

    assert desk.claim_ids(mail) == [first]


def test_a_delayed_first_message_keeps_its_group_waiting(desk, mail):
    first, second = desk.send(mail, group="a", delay_ms=5), desk.send(mail, group="a")

    assert desk.claim_ids(mail) == []

    desk.clock.advance(ms=5)
    [held] = desk.claim(mail, 10)
    assert held.id == first
    desk.complete(held)
    assert desk.claim_ids(mail) == [second]


def test_a_delayed_message_in_the_middle_holds_up_those_behind_it(desk, mail):
    first, middle, last = (desk.send(mail, group="a", delay_ms=ms) for ms in (0, 5, 0))
    desk.complete(*desk.claim(mail))

    assert desk.claim_ids(mail) == []

    desk.clock.advance(ms=5)
    [held] = desk.claim(mail, 10)
    assert held.id == middle
    desk.complete(held)
    assert desk.claim_ids(mail) == [last]
    assert desk.find(first) is None


def test_taking_one_out_of_the_middle_lets_nobody_overtake(desk, mail):
    first, middle, last = (desk.send(mail, group="a") for _ in range(3))
    desk.claim(mail)

    desk.alter(middle, lambda m, _: lifecycle.cancel(m))

    assert desk.claim_ids(mail) == []
    desk.complete(desk.get(first))
    assert desk.claim_ids(mail) == [last]


def test_a_redriven_message_comes_after_all_of_its_group(desk, mail):
    first, second = desk.send(mail, group="a"), desk.send(mail, group="a")
    [held] = desk.claim(mail)
    desk.act(Verb.BURY, held)
    [held] = desk.claim(mail)

    desk.alter(first, lambda m, q: transfer.redrive(m, q, now=desk.now))

    assert desk.claim_ids(mail) == []
    desk.complete(desk.get(second))
    assert desk.claim_ids(mail) == [first]


def test_a_redriven_message_that_is_alone_in_its_group_comes_at_once(desk, mail):
    message_id = desk.send(mail, group="a")
    desk.act(Verb.BURY, *desk.claim(mail))

    desk.alter(message_id, lambda m, q: transfer.redrive(m, q, now=desk.now))

    assert desk.claim_ids(mail) == [message_id]


def test_dead_letters_keep_the_order_of_their_group_in_the_dead_letter_queue(desk):
    dead = desk.queue("dead", ordering=Ordering.GROUP)
    mail = desk.queue("mail", ordering=Ordering.GROUP, dead_letter_queue="dead")
    first, second = desk.send(mail, group="a"), desk.send(mail, group="a")
    for _ in range(2):
        desk.act(Verb.BURY, *desk.claim(mail))

    [held] = desk.claim(dead, 10)
    assert held.id == first
    desk.complete(held)
    assert desk.claim_ids(dead) == [second]


def test_dead_letters_redriven_together_keep_their_order(desk):
    dead = desk.queue("dead")
    mail = desk.queue("mail", ordering=Ordering.GROUP, dead_letter_queue="dead")
    ids = [desk.send(mail, group="a") for _ in range(3)]
    for _ in range(3):
        desk.act(Verb.BURY, *desk.claim(mail))

    desk.write(lambda s: s.messages.redrive(dead.queue_no, to=None, limit=10, now=desk.now))

    for message_id in ids:
        [held] = desk.claim(mail, 10)
        assert held.id == message_id
        desk.complete(held)


def test_a_dead_letter_redriven_where_it_stands_goes_behind_its_group(desk):
    dead = desk.queue("dead", ordering=Ordering.GROUP)
    mail = desk.queue("mail", dead_letter_queue="dead")
    letter = desk.send(mail, group="a")
    desk.act(Verb.BURY, *desk.claim(mail))
    second, third = desk.send(dead, group="a"), desk.send(dead, group="a")

    desk.alter(letter, lambda m, q: transfer.redrive(m, q, now=desk.now))
    desk.alter(third, lambda m, _: lifecycle.cancel(m))

    [held] = desk.claim(dead, 10)
    assert held.id == second
    desk.complete(held)
    assert desk.claim_ids(dead) == [letter]


def test_purging_some_of_a_group_frees_the_next(desk, mail):
    ids = [desk.send(mail, group="a") for _ in range(3)]
    desk.claim(mail)

    purged = desk.write(lambda s: s.messages.purge(mail.queue_no, limit=2, now=desk.now))

    assert purged == 2
    [left] = [message_id for message_id in ids if desk.find(message_id)]
    assert not desk.get(left).is_blocked


def test_groups_that_end_in_one_batch_all_move_on(desk, mail):
    ids = [desk.send(mail, group=group) for group in "abcabc"]
    held = desk.claim(mail, 10)

    with desk.together():
        for message, verb in zip(held, (Verb.COMPLETE, Verb.BURY, Verb.CANCEL), strict=True):
            desk.submit_act(verb, message)
        claim = desk.submit_claim(mail, 10)

    assert [m.id for m, _ in claim.result().messages] == ids[3:]
