"""Days: history and bodies are in tables per day, which are dropped as a whole."""

import pytest

from penstock.domain.limits import DAY
from penstock.domain.message.lease import Verb


@pytest.fixture
def mail(driver):
    return driver.queue("mail")


def old_days(driver, before_day):
    return driver.read(lambda s: s.maintenance.old_days(before_day=before_day))


def drop(driver, day):
    driver.keeps_history = False
    driver.write(lambda s: s.maintenance.drop_day(day, now=driver.now))


def test_days_are_created_before_they_are_needed(driver):
    driver.write(lambda s: s.maintenance.prepare_days(now=driver.now))
    driver.write(lambda s: s.maintenance.prepare_days(now=driver.now))

    today = driver.now // DAY
    assert old_days(driver, today + 10) == [today, today + 1]


def test_only_days_before_the_given_one_are_old(driver, mail):
    today = driver.now // DAY
    for _ in range(3):
        driver.send(mail)
        driver.clock.advance(days=1)

    assert old_days(driver, today) == []
    assert old_days(driver, today + 2) == [today, today + 1]


def test_a_dropped_day_takes_its_history_with_it_and_no_other(driver, mail):
    old, young = driver.send(mail), driver.send(mail)
    held_old, held_young = driver.claim(mail, 2)
    driver.act(Verb.FAIL, held_old, delay_ms=0)
    driver.complete(*driver.claim(mail))
    today = driver.now // DAY
    driver.clock.advance(days=1)
    driver.complete(held_young)

    drop(driver, today)

    assert [e.id for e in driver.endings()] == [young]
    assert driver.attempts(old) == []
    assert old_days(driver, today + 10) == [today + 1]
    assert driver.counts(mail).done_total == 2


@pytest.mark.parametrize("state", ["waiting", "ready", "leased", "dead"])
def test_a_live_message_of_a_dropped_day_keeps_its_body(driver, mail, state):
    delay_ms = 10 * DAY if state == "waiting" else 0
    message_id = driver.send(mail, body='"old"', attributes={"a": "1"}, delay_ms=delay_ms)
    if state in ("leased", "dead"):
        [held] = driver.claim(mail, lease_ms=10 * DAY)
        if state == "dead":
            driver.act(Verb.BURY, held)
    today = driver.now // DAY
    driver.clock.advance(days=3)

    drop(driver, today)

    message = driver.get(message_id)
    content = driver.read(lambda s: s.messages.content(message))
    assert (content.body, content.attributes) == ('"old"', {"a": "1"})
    assert message.body_day == today + 3


def test_a_message_whose_body_has_moved_is_claimed_and_completed_like_any_other(driver, mail):
    driver.send(mail, body='"old"')
    today = driver.now // DAY
    driver.clock.advance(days=3)
    drop(driver, today)

    [(message, content)] = driver.submit_claim(mail).result().messages
    driver.complete(message)

    assert content.body == '"old"'
    [ending] = driver.endings()
    assert driver.read(lambda s: s.history.content(ending)).body == '"old"'


def test_an_ending_outlives_its_body(driver, mail):
    driver.send(mail)
    today = driver.now // DAY
    driver.clock.advance(days=3)
    driver.complete(*driver.claim(mail))
    drop(driver, today)

    [ending] = driver.endings()

    assert driver.read(lambda s: s.history.content(ending)) is None


def test_a_dropped_day_can_be_created_again(driver, mail):
    driver.send(mail)
    today = driver.now // DAY
    driver.clock.advance(days=1)
    drop(driver, today)
    driver.clock.advance(days=-1)

    message_id = driver.send(mail)
    driver.clock.advance(days=1)

    assert message_id in driver.claim_ids(mail)
