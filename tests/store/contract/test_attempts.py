"""Attempts: what is remembered of leases that ended without ending their messages."""

import pytest

from penstock.domain.limits import DAY, MINUTE
from penstock.domain.message.history import AttemptOutcome, attempt
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import LEASE_EXPIRED


@pytest.fixture
def mail(desk):
    return desk.queue("mail", lease_ms=MINUTE)


@pytest.mark.parametrize(
    ("verb", "outcome"),
    [
        (Verb.FAIL, AttemptOutcome.FAILED),
        (Verb.RELEASE, AttemptOutcome.RELEASED),
        (Verb.SNOOZE, AttemptOutcome.SNOOZED),
    ],
)
def test_a_lease_that_ends_without_its_message_leaves_an_attempt(desk, mail, verb, outcome):
    desk.send(mail)
    [held] = desk.claim(mail, claimed_by="worker-1")
    desk.clock.advance(seconds=1)

    desk.act(verb, held, text="so")

    expected = attempt(held, outcome, now=desk.now, error="so")
    assert desk.attempts(held.id) == [expected]


def test_a_lease_that_ran_out_leaves_an_attempt_when_it_is_noticed(desk, mail):
    desk.send(mail)
    [held] = desk.claim(mail, claimed_by="worker-1")
    desk.clock.advance(minutes=5)

    [again] = desk.claim(mail)

    expected = attempt(held, AttemptOutcome.EXPIRED, now=desk.now)
    assert desk.attempts(held.id) == [expected]
    assert expected.error == LEASE_EXPIRED
    assert again.lease_no == 2


@pytest.mark.parametrize("verb", [Verb.COMPLETE, Verb.BURY, Verb.CANCEL, Verb.EXTEND])
def test_acts_that_end_the_message_or_keep_the_lease_leave_no_attempt(desk, mail, verb):
    desk.send(mail)
    [held] = desk.claim(mail)

    desk.act(verb, held)

    assert desk.attempts(held.id) == []


def test_attempts_are_told_in_their_order_over_several_days(desk, mail):
    message_id = desk.send(mail)
    for _ in range(3):
        desk.act(Verb.FAIL, *desk.claim(mail), delay_ms=DAY)
        desk.clock.advance(days=1)

    attempts = desk.attempts(message_id)

    assert [a.lease_no for a in attempts] == [1, 2, 3]
    assert [a.ended_at for a in attempts] == sorted(a.ended_at for a in attempts)
    assert desk.attempts("another") == []


def test_the_failure_that_kills_leaves_an_attempt_and_an_ending(desk):
    mail = desk.queue("mail", max_attempts=1)
    message_id = desk.send(mail)

    desk.act(Verb.FAIL, *desk.claim(mail), text="boom")

    assert [a.error for a in desk.attempts(message_id)] == ["boom"]
    assert [e.last_error for e in desk.endings(id=message_id)] == ["boom"]
