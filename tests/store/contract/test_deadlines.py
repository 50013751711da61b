"""Timeouts and crashes of attempts: the store does what the lifecycle says."""

import pytest

from penstock.domain.errors import LeaseLost
from penstock.domain.limits import MINUTE, SECOND
from penstock.domain.message import lifecycle
from penstock.domain.message.history import AttemptOutcome
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import TOOK_TOO_LONG, State
from penstock.domain.queue.queue import Ordering
from penstock.ports.store import Acted
from tests.factories import an_act


@pytest.fixture
def mail(driver):
    return driver.queue("mail", lease_ms=MINUTE)


def sweep(driver, queue):
    return driver.write(
        lambda s: s.maintenance.return_due(queue.queue_no, now=driver.now, limit=100)
    )


WAYS = [{}, {"in_a_row": True}, {"kinds": ("k",)}, {"claim_key": "key"}]


@pytest.mark.parametrize("way", WAYS)
def test_every_claim_leases_exactly_as_the_lifecycle_says(driver, way):
    orders = driver.queue("orders", lease_ms=MINUTE, ordering=Ordering.GROUP)
    for timeout_ms in (None, SECOND, MINUTE, 2 * MINUTE):
        driver.send(orders, kind="k", timeout_ms=timeout_ms, route="eu")
    expected = [
        lifecycle.claim(m, now=driver.now, lease_ms=MINUTE)
        for m in driver.browse(orders, State.READY)
    ]

    assert driver.claim(orders, 10, **way) == expected
    assert {m.id: m for m in driver.browse(orders, State.LEASED)} == {m.id: m for m in expected}


def test_a_new_attempt_begins_without_the_start_and_the_progress_of_the_last(driver, mail):
    driver.send(mail, timeout_ms=MINUTE)
    [held] = driver.claim(mail)
    driver.act(Verb.EXTEND, held, is_start=True, progress='{"done": 1}')
    stored = driver.get(held.id)
    driver.act(Verb.RELEASE, held)

    [again] = driver.claim(mail)

    assert (stored.started_at, stored.progress) == (driver.now, '{"done": 1}')
    assert (again.started_at, again.progress) == (None, None)


def test_an_extension_past_the_deadline_times_the_attempt_out(driver, mail):
    message_id = driver.send(mail, timeout_ms=SECOND)
    [held] = driver.claim(mail, claimed_by="slow")
    driver.clock.advance(seconds=1)

    answer = driver.act(Verb.EXTEND, held, delay_ms=MINUTE)

    assert isinstance(answer, LeaseLost)
    found = driver.get(message_id)
    assert (found.state, found.reason) == (State.DEAD, "timed_out")
    [ending] = driver.endings()
    assert (ending.outcome, ending.reason, ending.last_error) == (
        State.DEAD,
        "timed_out",
        TOOK_TOO_LONG,
    )
    [attempt] = driver.attempts(message_id)
    assert (attempt.outcome, attempt.leased_by) == (AttemptOutcome.TIMED_OUT, "slow")
    assert attempt.error == TOOK_TOO_LONG
    counts = driver.counts(mail)
    assert (counts.failed_total, counts.expired_total, counts.leased, counts.dead) == (1, 0, 0, 1)


def test_in_a_batch_only_those_past_their_deadlines_are_timed_out(driver, mail):
    limits = (None, SECOND, MINUTE, SECOND, SECOND)
    for timeout_ms in limits:
        driver.send(mail, timeout_ms=timeout_ms)
    endless, late, patient, begun, done = driver.claim(mail, len(limits))
    driver.clock.advance(seconds=2)

    answers = driver.store.act(
        [
            an_act(Verb.EXTEND, endless, now=driver.now),
            an_act(Verb.EXTEND, late, now=driver.now),
            an_act(Verb.EXTEND, patient, now=driver.now),
            an_act(Verb.EXTEND, begun, now=driver.now, is_start=True),
            an_act(Verb.COMPLETE, done, now=driver.now),
        ]
    ).result()

    assert [isinstance(answer, Acted) for answer in answers] == [True, False, True, True, True]
    assert isinstance(answers[1], LeaseLost)
    for message in (endless, patient, begun):
        assert driver.get(message.id).state is State.LEASED
        assert driver.get(message.id).due_at == driver.now + MINUTE
    assert (driver.get(late.id).state, driver.find(done.id)) == (State.DEAD, None)


def test_past_the_deadline_the_work_may_still_be_done(driver, mail):
    message_id = driver.send(mail, timeout_ms=SECOND)
    [held] = driver.claim(mail)
    driver.clock.advance(seconds=30)

    driver.complete(held)

    assert driver.find(message_id) is None
    assert driver.attempts(message_id) == []


def test_a_silent_holder_loses_the_message_when_its_lease_expires_and_not_before(driver, mail):
    message_id = driver.send(mail, timeout_ms=SECOND)
    driver.claim(mail, claimed_by="dead")
    driver.clock.advance(seconds=59)
    assert (driver.claim(mail), driver.get(message_id).state) == ([], State.LEASED)
    driver.clock.advance(seconds=1)

    [again] = driver.claim(mail)

    assert (again.id, again.attempts, again.failures, again.crashes) == (message_id, 2, 0, 0)
    [attempt] = driver.attempts(message_id)
    assert (attempt.outcome, attempt.leased_by) == (AttemptOutcome.EXPIRED, "dead")
    assert (driver.counts(mail).failed_total, driver.counts(mail).expired_total) == (0, 1)


def test_the_sweep_brings_it_back_too(driver, mail):
    message_id = driver.send(mail, timeout_ms=SECOND)
    driver.claim(mail)
    driver.clock.advance(minutes=1)

    assert sweep(driver, mail) == 1

    assert driver.get(message_id).state is State.READY


def test_a_message_that_retries_timeouts_backs_off_and_is_tried_again(driver, mail):
    message_id = driver.send(mail, timeout_ms=SECOND, retries_timeouts=True)
    [held] = driver.claim(mail)
    driver.clock.advance(seconds=1)

    assert isinstance(driver.act(Verb.EXTEND, held, delay_ms=7), LeaseLost)

    found = driver.get(message_id)
    expected = lifecycle.time_out(held, mail, lease_no=held.lease_no, now=driver.now)
    assert (found.state, found.due_at, found.failures) == (State.WAITING, expected.due_at, 1)
    [attempt] = driver.attempts(message_id)
    assert attempt.outcome is AttemptOutcome.TIMED_OUT


def test_a_timeout_unblocks_the_next_message_of_the_group(driver):
    orders = driver.queue("orders", lease_ms=MINUTE, ordering=Ordering.GROUP)
    for _ in range(2):
        driver.send(orders, group="a", timeout_ms=SECOND)
    [held] = driver.claim(orders, 10)
    driver.clock.advance(seconds=1)

    driver.act(Verb.EXTEND, held)

    [following] = driver.claim(orders, 10)
    assert following.id != held.id


@pytest.mark.parametrize("ordering", Ordering)
def test_a_timed_out_message_goes_to_the_dead_letter_queue(driver, ordering):
    dead = driver.queue("dead", ordering=ordering)
    mail = driver.queue("mail", dead_letter_queue="dead")
    message_id = driver.send(mail, timeout_ms=SECOND, route="eu", group="a")
    [held] = driver.claim(mail)
    driver.clock.advance(seconds=1)

    driver.act(Verb.EXTEND, held)

    [letter] = driver.claim(dead)
    assert (letter.id, letter.reason, letter.route) == (message_id, "timed_out", "eu")
    assert letter.timeout_ms == SECOND


def test_a_message_that_kills_its_workers_is_set_aside_and_may_be_redriven(driver):
    mail = driver.queue("mail", max_crashes=2)
    message_id = driver.send(mail)
    for n in (1, 2):
        [held] = driver.claim(mail)
        answer = driver.act(Verb.CRASH, held, text=f"signal {n}")

    assert answer.state is State.DEAD
    found = driver.get(message_id)
    assert (found.reason, found.crashes, found.last_error) == ("quarantined", 2, "signal 2")
    [ending] = driver.endings()
    assert (ending.reason, ending.crashes) == ("quarantined", 2)
    outcomes = [attempt.outcome for attempt in driver.attempts(message_id)]
    assert outcomes == [AttemptOutcome.CRASHED] * 2

    driver.write(lambda s: s.messages.redrive(mail.queue_no, to=None, limit=1, now=driver.now))
    assert driver.get(message_id).crashes == 0


@pytest.mark.parametrize("verb", [Verb.COMPLETE, Verb.CANCEL])
def test_history_keeps_the_route_and_the_crashes(driver, mail, verb):
    driver.send(mail, route="eu")
    [held] = driver.claim(mail)
    driver.act(Verb.CRASH, held)
    [held] = driver.claim(mail)

    driver.act(verb, held)

    [ending] = driver.endings()
    assert (ending.route, ending.crashes) == ("eu", 1)
