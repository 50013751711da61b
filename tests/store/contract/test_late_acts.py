"""Acts that may come late: taken after the lease ran out, until somebody else has the message."""

import pytest

from penstock.domain.errors import LeaseLost
from penstock.domain.limits import MINUTE
from penstock.domain.message import lifecycle
from penstock.domain.message.history import AttemptOutcome
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import Ordering
from penstock.ports.store import Acted
from tests.factories import BACKOFF_MS

LATE = [Verb.COMPLETE, Verb.EXTEND]


@pytest.fixture
def mail(desk):
    return desk.queue("mail", lease_ms=MINUTE)


def bring_back(desk, queue):
    desk.write(lambda s: s.tidying.bring_back(queue.queue_no, now=desk.now, limit=100))


def lose(desk, queue):
    """A message whose lease ran out and which is in line again, as its holder had it."""
    desk.send(queue)
    [held] = desk.claim(queue)
    desk.clock.advance(minutes=1)
    bring_back(desk, queue)
    assert desk.get(held.id).state is State.READY
    return held


def test_a_message_that_came_back_can_still_be_completed_by_who_had_it(desk, mail):
    held = lose(desk, mail)

    answer = desk.act(Verb.COMPLETE, held, is_late_ok=True)

    assert answer == Acted(held.id, State.DONE, answer.due_at)
    assert desk.claim(mail) == []
    [ending] = desk.endings()
    assert (ending.outcome, ending.attempts, ending.finished_at) == (State.DONE, 1, desk.now)
    assert [a.outcome for a in desk.attempts(held.id)] == [AttemptOutcome.EXPIRED]


def test_a_message_that_came_back_is_leased_again_to_who_had_it(desk, mail):
    held = lose(desk, mail)

    answer = desk.act(Verb.EXTEND, held, is_late_ok=True, delay_ms=5)

    assert answer == Acted(held.id, State.LEASED, desk.now + 5)
    assert desk.claim(mail) == []
    again = desk.get(held.id)
    assert (again.lease_no, again.leased_at, again.attempts) == (1, held.leased_at, 1)
    desk.complete(held)  # not late any more


@pytest.mark.parametrize("verb", LATE)
def test_without_the_word_late_is_too_late(desk, mail, verb):
    held = lose(desk, mail)

    assert isinstance(desk.act(verb, held), LeaseLost)
    assert desk.get(held.id).state is State.READY


@pytest.mark.parametrize("verb", LATE)
@pytest.mark.parametrize("then", ["is held", "was given back", "was lost"])
def test_once_somebody_else_has_claimed_the_message_it_is_too_late(desk, mail, verb, then):
    held = lose(desk, mail)
    [other] = desk.claim(mail)
    if then == "was given back":
        desk.act(Verb.RELEASE, other)
    elif then == "was lost":
        desk.clock.advance(minutes=1)
        bring_back(desk, mail)
    before = desk.get(held.id)

    assert isinstance(desk.act(verb, held, is_late_ok=True), LeaseLost)
    assert desk.get(held.id) == before


@pytest.mark.parametrize("verb", LATE)
def test_two_claims_in_the_same_instant_are_told_apart(desk, mail, verb):
    desk.send(mail)
    [first], [second] = desk.claim(mail, lease_ms=0), desk.claim(mail, lease_ms=0)
    assert first.leased_at == second.leased_at

    assert isinstance(desk.act(verb, first, is_late_ok=True), LeaseLost)
    assert isinstance(desk.act(verb, second, is_late_ok=True), Acted)


@pytest.mark.parametrize("verb", LATE)
def test_a_message_that_has_ended_cannot_be_had_again(desk, mail, verb):
    held = lose(desk, mail)
    desk.complete(*desk.claim(mail))
    dead = lose(desk, mail)
    desk.alter(dead.id, lambda m, _: lifecycle.bury(m))

    for message in (held, dead):
        assert isinstance(desk.act(verb, message, is_late_ok=True), LeaseLost)
    assert desk.get(dead.id).state is State.DEAD


@pytest.mark.parametrize("verb", LATE)
def test_a_dead_letter_is_not_its_last_holders_any_more(desk, verb):
    dead = desk.queue("dead")
    mail = desk.queue("mail", lease_ms=MINUTE, max_attempts=1, dead_letter_queue="dead")
    desk.send(mail)
    [held] = desk.claim(mail)
    desk.clock.advance(minutes=1)
    bring_back(desk, mail)

    assert isinstance(desk.act(verb, held, is_late_ok=True), LeaseLost)
    assert desk.claim_ids(dead) == [held.id]


@pytest.mark.parametrize("verb", [Verb.FAIL, Verb.RELEASE, Verb.SNOOZE])
def test_what_its_holder_gave_back_can_be_had_again(desk, mail, verb):
    desk.send(mail)
    [held] = desk.claim(mail)
    desk.act(verb, held, delay_ms=BACKOFF_MS)
    assert desk.get(held.id).state is State.WAITING

    assert isinstance(desk.act(Verb.EXTEND, held, is_late_ok=True), Acted)
    assert desk.get(held.id).attempts == 1
    assert isinstance(desk.act(Verb.RELEASE, held), Acted)
    assert desk.get(held.id).attempts == 0
    assert isinstance(desk.act(Verb.COMPLETE, held, is_late_ok=True), Acted)
    assert desk.find(held.id) is None


def test_a_late_completion_lets_the_next_of_its_group_come(desk):
    mail = desk.queue("mail", ordering=Ordering.GROUP, lease_ms=MINUTE)
    first, second = desk.send(mail, group="a"), desk.send(mail, group="a")
    [held] = desk.claim(mail)
    desk.clock.advance(minutes=1)
    bring_back(desk, mail)

    desk.act(Verb.COMPLETE, held, is_late_ok=True)

    assert desk.find(first) is None
    assert desk.claim_ids(mail) == [second]


def test_late_ones_and_others_in_one_batch_are_each_judged_for_themselves(desk, mail):
    late, too_late = lose(desk, mail), lose(desk, mail)
    desk.claim(mail, 2)
    desk.act(Verb.RELEASE, desk.get(late.id))
    late = desk.get(late.id)
    desk.send(mail, priority=-1)
    [held] = desk.claim(mail)

    with desk.together():
        tickets = [
            desk.submit_act(Verb.COMPLETE, message, is_late_ok=is_late_ok)
            for message in (late, too_late, held)
            for is_late_ok in (True, False)
        ]

    answers = [type(ticket.result()[0]) for ticket in tickets]
    assert answers == [Acted, LeaseLost, LeaseLost, LeaseLost, Acted, LeaseLost]
    assert desk.counts(mail).done_total == 2


def test_what_became_of_a_message_is_told_by_its_number(desk, mail):
    held = lose(desk, mail)
    [done] = desk.claim(mail, 1)
    desk.complete(done)
    assert done.id == held.id
    back = lose(desk, mail)

    found = desk.read(lambda s: s.messages.numbered([held.message_no, back.message_no, 10**9]))

    assert found == [desk.get(back.id)]
    assert found[0].state is State.READY
    assert desk.read(lambda s: s.messages.numbered([])) == []
