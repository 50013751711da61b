"""Attempts that take too long, and workers that die: the store does what the lifecycle says."""

import pytest

from penstock.domain import message as lifecycle
from penstock.domain.history import AttemptOutcome
from penstock.domain.lease import Verb
from penstock.domain.limits import MINUTE, SECOND
from penstock.domain.message import State
from penstock.domain.queue import Ordering
from penstock.ports.store import Acted


@pytest.fixture
def mail(desk):
    return desk.queue("mail", lease_ms=MINUTE)


def sweep(desk, queue):
    return desk.write(lambda s: s.tidying.bring_back(queue.queue_no, now=desk.now, limit=100))


WAYS = [{}, {"in_a_row": True}, {"kinds": ("k",)}, {"claim_key": "key"}]


@pytest.mark.parametrize("way", WAYS)
def test_every_claim_leases_exactly_as_the_lifecycle_says(desk, way):
    orders = desk.queue("orders", lease_ms=MINUTE, ordering=Ordering.GROUP)
    for timeout_ms in (None, SECOND, MINUTE, 2 * MINUTE):
        desk.send(orders, kind="k", timeout_ms=timeout_ms, route="eu")
    expected = [
        lifecycle.claim(m, now=desk.now, lease_ms=MINUTE) for m in desk.browse(orders, State.READY)
    ]

    assert desk.claim(orders, 10, **way) == expected
    assert {m.id: m for m in desk.browse(orders, State.LEASED)} == {m.id: m for m in expected}


def test_a_new_attempt_begins_without_the_start_and_the_progress_of_the_last(desk, mail):
    desk.send(mail, timeout_ms=MINUTE)
    [held] = desk.claim(mail)
    desk.act(Verb.EXTEND, held, is_start=True, progress='{"done": 1}')
    told = desk.get(held.id)
    desk.act(Verb.RELEASE, held)

    [again] = desk.claim(mail)

    assert (told.started_at, told.progress) == (desk.now, '{"done": 1}')
    assert (again.started_at, again.progress) == (None, None)


def test_a_lease_that_ran_out_at_the_deadline_is_timed_out_by_the_next_claim(desk, mail):
    message_id = desk.send(mail, timeout_ms=SECOND)
    desk.claim(mail, claimed_by="slow")
    desk.clock.advance(seconds=1)

    assert desk.claim(mail) == []

    found = desk.get(message_id)
    assert (found.state, found.reason) == (State.DEAD, "timed_out")
    [ending] = desk.endings()
    assert (ending.outcome, ending.reason) == (State.DEAD, "timed_out")
    [attempt] = desk.attempts(message_id)
    assert (attempt.outcome, attempt.leased_by) == (AttemptOutcome.TIMED_OUT, "slow")
    assert desk.counts(mail).failed_total == 1


def test_one_that_retries_timeouts_is_tried_again(desk, mail):
    message_id = desk.send(mail, timeout_ms=SECOND, retries_timeouts=True)
    desk.claim(mail)
    desk.clock.advance(seconds=1)

    [again] = desk.claim(mail)

    assert (again.id, again.attempts) == (message_id, 2)
    [attempt] = desk.attempts(message_id)
    assert attempt.outcome is AttemptOutcome.TIMED_OUT


def test_an_extension_is_told_where_the_deadline_is(desk, mail):
    desk.send(mail, timeout_ms=90 * SECOND)
    [held] = desk.claim(mail)
    desk.clock.advance(seconds=50)

    answer = desk.act(Verb.EXTEND, held)

    assert isinstance(answer, Acted)
    assert answer.due_at == held.leased_at + 90 * SECOND


def test_what_is_timed_out_goes_to_the_dead_letters(desk):
    dead = desk.queue("dead")
    mail = desk.queue("mail", dead_letter_queue="dead")
    message_id = desk.send(mail, timeout_ms=SECOND, route="eu")
    desk.claim(mail)
    desk.clock.advance(seconds=1)

    assert sweep(desk, mail) == 1

    [letter] = desk.claim(dead)
    assert (letter.id, letter.reason, letter.route) == (message_id, "timed_out", "eu")
    assert letter.timeout_ms == SECOND


def test_a_message_that_kills_its_workers_is_set_aside_and_may_be_redriven(desk):
    mail = desk.queue("mail", max_crashes=2)
    message_id = desk.send(mail)
    for n in (1, 2):
        [held] = desk.claim(mail)
        answer = desk.act(Verb.CRASH, held, text=f"signal {n}")

    assert answer.state is State.DEAD
    found = desk.get(message_id)
    assert (found.reason, found.crashes, found.last_error) == ("quarantined", 2, "signal 2")
    [ending] = desk.endings()
    assert (ending.reason, ending.crashes) == ("quarantined", 2)
    outcomes = [attempt.outcome for attempt in desk.attempts(message_id)]
    assert outcomes == [AttemptOutcome.CRASHED] * 2

    desk.write(lambda s: s.messages.redrive(mail.queue_no, to=None, limit=1, now=desk.now))
    assert desk.get(message_id).crashes == 0


@pytest.mark.parametrize("verb", [Verb.COMPLETE, Verb.CANCEL])
def test_history_keeps_the_route_and_the_crashes(desk, mail, verb):
    desk.send(mail, route="eu")
    [held] = desk.claim(mail)
    desk.act(Verb.CRASH, held)
    [held] = desk.claim(mail)

    desk.act(verb, held)

    [ending] = desk.endings()
    assert (ending.route, ending.crashes) == ("eu", 1)
