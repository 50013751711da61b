"""Attempts: the record of leases that did not finish their messages."""

import pytest

from penstock.domain.limits import DAY, MINUTE
from penstock.domain.message.history import AttemptOutcome, attempt
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import LEASE_EXPIRED


@pytest.fixture
def mail(driver):
    return driver.queue("mail", lease_ms=MINUTE)


@pytest.mark.parametrize(
    ("verb", "outcome"),
    [
        (Verb.FAIL, AttemptOutcome.FAILED),
        (Verb.RELEASE, AttemptOutcome.RELEASED),
        (Verb.SNOOZE, AttemptOutcome.SNOOZED),
    ],
)
def test_a_lease_that_ends_without_its_message_leaves_an_attempt(driver, mail, verb, outcome):
    driver.send(mail)
    [held] = driver.claim(mail, claimed_by="worker-1")
    driver.clock.advance(seconds=1)

    driver.act(verb, held, text="so")

    expected = attempt(held, outcome, now=driver.now, error="so")
    assert driver.attempts(held.id) == [expected]


def test_an_expired_lease_leaves_an_attempt_when_it_is_noticed(driver, mail):
    driver.send(mail)
    [held] = driver.claim(mail, claimed_by="worker-1")
    driver.clock.advance(minutes=5)

    [again] = driver.claim(mail)

    expected = attempt(held, AttemptOutcome.EXPIRED, now=driver.now)
    assert driver.attempts(held.id) == [expected]
    assert expected.error == LEASE_EXPIRED
    assert again.lease_no == 2


@pytest.mark.parametrize("verb", [Verb.COMPLETE, Verb.BURY, Verb.CANCEL, Verb.EXTEND])
def test_acts_that_end_the_message_or_keep_the_lease_leave_no_attempt(driver, mail, verb):
    driver.send(mail)
    [held] = driver.claim(mail)

    driver.act(verb, held)

    assert driver.attempts(held.id) == []


def test_attempts_are_listed_in_order_over_several_days(driver, mail):
    message_id = driver.send(mail)
    for _ in range(3):
        driver.act(Verb.FAIL, *driver.claim(mail), delay_ms=DAY)
        driver.clock.advance(days=1)

    attempts = driver.attempts(message_id)

    assert [a.lease_no for a in attempts] == [1, 2, 3]
    assert [a.ended_at for a in attempts] == sorted(a.ended_at for a in attempts)
    assert driver.attempts("another") == []


def test_the_failure_that_kills_leaves_an_attempt_and_an_ending(driver):
    mail = driver.queue("mail", max_attempts=1)
    message_id = driver.send(mail)

    driver.act(Verb.FAIL, *driver.claim(mail), text="boom")

    assert [a.error for a in driver.attempts(message_id)] == ["boom"]
    assert [e.last_error for e in driver.endings(id=message_id)] == ["boom"]
