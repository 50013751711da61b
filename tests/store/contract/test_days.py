"""Days: history and bodies are kept in parts of one day each, which are dropped whole."""

import pytest

from penstock.domain.limits import DAY
from penstock.domain.message.lease import Verb


@pytest.fixture
def mail(desk):
    return desk.queue("mail")


def old_days(desk, before_day):
    return desk.read(lambda s: s.tidying.old_days(before_day=before_day))


def drop(desk, day):
    desk.keeps_history = False
    desk.write(lambda s: s.tidying.drop_day(day, now=desk.now))


def test_days_are_there_before_they_are_needed(desk):
    desk.write(lambda s: s.tidying.prepare_days(now=desk.now))
    desk.write(lambda s: s.tidying.prepare_days(now=desk.now))

    today = desk.now // DAY
    assert old_days(desk, today + 10) == [today, today + 1]


def test_only_days_before_the_given_one_are_old(desk, mail):
    today = desk.now // DAY
    for _ in range(3):
        desk.send(mail)
        desk.clock.advance(days=1)

    assert old_days(desk, today) == []
    assert old_days(desk, today + 2) == [today, today + 1]


def test_a_dropped_day_takes_its_history_with_it_and_no_other(desk, mail):
    old, young = desk.send(mail), desk.send(mail)
    held_old, held_young = desk.claim(mail, 2)
    desk.act(Verb.FAIL, held_old, delay_ms=0)
    desk.complete(*desk.claim(mail))
    today = desk.now // DAY
    desk.clock.advance(days=1)
    desk.complete(held_young)

    drop(desk, today)

    assert [e.id for e in desk.endings()] == [young]
    assert desk.attempts(old) == []
    assert old_days(desk, today + 10) == [today + 1]
    assert desk.counts(mail).done_total == 2


@pytest.mark.parametrize("state", ["waiting", "ready", "leased", "dead"])
def test_what_is_still_alive_of_a_dropped_day_keeps_its_body(desk, mail, state):
    delay_ms = 10 * DAY if state == "waiting" else 0
    message_id = desk.send(mail, body='"old"', attributes={"a": "1"}, delay_ms=delay_ms)
    if state in ("leased", "dead"):
        [held] = desk.claim(mail, lease_ms=10 * DAY)
        if state == "dead":
            desk.act(Verb.BURY, held)
    today = desk.now // DAY
    desk.clock.advance(days=3)

    drop(desk, today)

    message = desk.get(message_id)
    content = desk.read(lambda s: s.messages.content(message))
    assert (content.body, content.attributes) == ('"old"', {"a": "1"})
    assert message.body_day == today + 3


def test_a_message_whose_body_has_moved_is_claimed_and_completed_like_any_other(desk, mail):
    desk.send(mail, body='"old"')
    today = desk.now // DAY
    desk.clock.advance(days=3)
    drop(desk, today)

    [(message, content)] = desk.submit_claim(mail).result().messages
    desk.complete(message)

    assert content.body == '"old"'
    [ending] = desk.endings()
    assert desk.read(lambda s: s.history.content(ending)).body == '"old"'


def test_an_ending_outlives_its_body(desk, mail):
    desk.send(mail)
    today = desk.now // DAY
    desk.clock.advance(days=3)
    desk.complete(*desk.claim(mail))
    drop(desk, today)

    [ending] = desk.endings()

    assert desk.read(lambda s: s.history.content(ending)) is None


def test_a_day_that_was_dropped_can_come_again(desk, mail):
    desk.send(mail)
    today = desk.now // DAY
    desk.clock.advance(days=1)
    drop(desk, today)
    desk.clock.advance(days=-1)

    message_id = desk.send(mail)
    desk.clock.advance(days=1)

    assert message_id in desk.claim_ids(mail)
