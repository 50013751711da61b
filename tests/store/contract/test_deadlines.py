"""Attempts that take too long, and workers that die: the store does what the lifecycle says."""

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


def test_whoever_extends_past_the_deadline_is_timed_out_there_and_then(desk, mail):
    message_id = desk.send(mail, timeout_ms=SECOND)
    [held] = desk.claim(mail, claimed_by="slow")
    desk.clock.advance(seconds=1)

    answer = desk.act(Verb.EXTEND, held, delay_ms=MINUTE)

    assert isinstance(answer, LeaseLost)
    found = desk.get(message_id)
    assert (found.state, found.reason) == (State.DEAD, "timed_out")
    [ending] = desk.endings()
    assert (ending.outcome, ending.reason, ending.last_error) == (
        State.DEAD,
        "timed_out",
        TOOK_TOO_LONG,
    )
    [attempt] = desk.attempts(message_id)
    assert (attempt.outcome, attempt.leased_by) == (AttemptOutcome.TIMED_OUT, "slow")
    assert attempt.error == TOOK_TOO_LONG
    counts = desk.counts(mail)
    assert (counts.failed_total, counts.expired_total, counts.leased, counts.dead) == (1, 0, 0, 1)


def test_in_a_batch_only_those_past_their_deadlines_are_timed_out(desk, mail):
    limits = (None, SECOND, MINUTE, SECOND, SECOND)
    for timeout_ms in limits:
        desk.send(mail, timeout_ms=timeout_ms)
    endless, late, patient, begun, done = desk.claim(mail, len(limits))
    desk.clock.advance(seconds=2)

    answers = desk.store.act(
        [
            an_act(Verb.EXTEND, endless, now=desk.now),
            an_act(Verb.EXTEND, late, now=desk.now),
            an_act(Verb.EXTEND, patient, now=desk.now),
            an_act(Verb.EXTEND, begun, now=desk.now, is_start=True),
            an_act(Verb.COMPLETE, done, now=desk.now),
        ]
    ).result()

    assert [isinstance(answer, Acted) for answer in answers] == [True, False, True, True, True]
    assert isinstance(answers[1], LeaseLost)
    for message in (endless, patient, begun):
        assert desk.get(message.id).state is State.LEASED
        assert desk.get(message.id).due_at == desk.now + MINUTE
    assert (desk.get(late.id).state, desk.find(done.id)) == (State.DEAD, None)


def test_past_the_deadline_the_work_may_still_be_done(desk, mail):
    message_id = desk.send(mail, timeout_ms=SECOND)
    [held] = desk.claim(mail)
    desk.clock.advance(seconds=30)

    desk.complete(held)

    assert desk.find(message_id) is None
    assert desk.attempts(message_id) == []


def test_a_silent_holder_loses_the_message_when_its_lease_runs_out_and_not_before(desk, mail):
    message_id = desk.send(mail, timeout_ms=SECOND)
    desk.claim(mail, claimed_by="dead")
    desk.clock.advance(seconds=59)
    assert (desk.claim(mail), desk.get(message_id).state) == ([], State.LEASED)
    desk.clock.advance(seconds=1)

    [again] = desk.claim(mail)

    assert (again.id, again.attempts, again.failures, again.crashes) == (message_id, 2, 0, 0)
    [attempt] = desk.attempts(message_id)
    assert (attempt.outcome, attempt.leased_by) == (AttemptOutcome.EXPIRED, "dead")
    assert (desk.counts(mail).failed_total, desk.counts(mail).expired_total) == (0, 1)


def test_the_sweep_brings_it_back_too(desk, mail):
    message_id = desk.send(mail, timeout_ms=SECOND)
    desk.claim(mail)
    desk.clock.advance(minutes=1)

    assert sweep(desk, mail) == 1

    assert desk.get(message_id).state is State.READY


def test_one_that_retries_timeouts_backs_off_and_is_tried_again(desk, mail):
    message_id = desk.send(mail, timeout_ms=SECOND, retries_timeouts=True)
    [held] = desk.claim(mail)
    desk.clock.advance(seconds=1)

    assert isinstance(desk.act(Verb.EXTEND, held, delay_ms=7), LeaseLost)

    found = desk.get(message_id)
    expected = lifecycle.time_out(held, mail, lease_no=held.lease_no, now=desk.now)
    assert (found.state, found.due_at, found.failures) == (State.WAITING, expected.due_at, 1)
    [attempt] = desk.attempts(message_id)
    assert attempt.outcome is AttemptOutcome.TIMED_OUT


def test_what_is_timed_out_lets_the_next_of_its_group_come(desk):
    orders = desk.queue("orders", lease_ms=MINUTE, ordering=Ordering.GROUP)
    for _ in range(2):
        desk.send(orders, group="a", timeout_ms=SECOND)
    [held] = desk.claim(orders, 10)
    desk.clock.advance(seconds=1)

    desk.act(Verb.EXTEND, held)

    [following] = desk.claim(orders, 10)
    assert following.id != held.id


@pytest.mark.parametrize("ordering", Ordering)
def test_what_is_timed_out_goes_to_the_dead_letters(desk, ordering):
    dead = desk.queue("dead", ordering=ordering)
    mail = desk.queue("mail", dead_letter_queue="dead")
    message_id = desk.send(mail, timeout_ms=SECOND, route="eu", group="a")
    [held] = desk.claim(mail)
    desk.clock.advance(seconds=1)

    desk.act(Verb.EXTEND, held)

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
