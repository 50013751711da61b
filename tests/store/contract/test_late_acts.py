"""Late acts: accepted after the lease expired, until another worker claims the message."""

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
def mail(driver):
    return driver.queue("mail", lease_ms=MINUTE)


def return_due(driver, queue):
    driver.write(lambda s: s.maintenance.return_due(queue.queue_no, now=driver.now, limit=100))


def lose(driver, queue):
    """A message whose lease expired and that is ready again, as its holder had it."""
    driver.send(queue)
    [held] = driver.claim(queue)
    driver.clock.advance(minutes=1)
    return_due(driver, queue)
    assert driver.get(held.id).state is State.READY
    return held


def test_a_message_that_was_brought_back_can_still_be_completed_by_its_last_holder(driver, mail):
    held = lose(driver, mail)

    answer = driver.act(Verb.COMPLETE, held, is_late_ok=True)

    assert answer == Acted(held.id, State.DONE, answer.due_at)
    assert driver.claim(mail) == []
    [ending] = driver.endings()
    assert (ending.outcome, ending.attempts, ending.finished_at) == (State.DONE, 1, driver.now)
    assert [a.outcome for a in driver.attempts(held.id)] == [AttemptOutcome.EXPIRED]


def test_a_late_extension_leases_the_message_to_its_last_holder_again(driver, mail):
    held = lose(driver, mail)

    answer = driver.act(Verb.EXTEND, held, is_late_ok=True, delay_ms=5)

    assert answer == Acted(held.id, State.LEASED, driver.now + 5)
    assert driver.claim(mail) == []
    again = driver.get(held.id)
    assert (again.lease_no, again.leased_at, again.attempts) == (1, held.leased_at, 1)
    driver.complete(held)  # not late any more


@pytest.mark.parametrize("verb", LATE)
def test_without_is_late_ok_a_late_act_is_refused(driver, mail, verb):
    held = lose(driver, mail)

    assert isinstance(driver.act(verb, held), LeaseLost)
    assert driver.get(held.id).state is State.READY


@pytest.mark.parametrize("verb", LATE)
@pytest.mark.parametrize("then", ["is held", "was given back", "was lost"])
def test_once_another_worker_has_claimed_the_message_a_late_act_is_refused(
    driver, mail, verb, then
):
    held = lose(driver, mail)
    [other] = driver.claim(mail)
    if then == "was given back":
        driver.act(Verb.RELEASE, other)
    elif then == "was lost":
        driver.clock.advance(minutes=1)
        return_due(driver, mail)
    before = driver.get(held.id)

    assert isinstance(driver.act(verb, held, is_late_ok=True), LeaseLost)
    assert driver.get(held.id) == before


@pytest.mark.parametrize("verb", LATE)
def test_two_claims_at_the_same_instant_are_distinguished(driver, mail, verb):
    driver.send(mail)
    [first], [second] = driver.claim(mail, lease_ms=0), driver.claim(mail, lease_ms=0)
    assert first.leased_at == second.leased_at

    assert isinstance(driver.act(verb, first, is_late_ok=True), LeaseLost)
    assert isinstance(driver.act(verb, second, is_late_ok=True), Acted)


@pytest.mark.parametrize("verb", LATE)
def test_a_late_act_on_an_ended_message_is_refused(driver, mail, verb):
    held = lose(driver, mail)
    driver.complete(*driver.claim(mail))
    dead = lose(driver, mail)
    driver.alter(dead.id, lambda m, _: lifecycle.bury(m))

    for message in (held, dead):
        assert isinstance(driver.act(verb, message, is_late_ok=True), LeaseLost)
    assert driver.get(dead.id).state is State.DEAD


@pytest.mark.parametrize("verb", LATE)
def test_a_late_act_on_a_dead_letter_is_refused(driver, verb):
    dead = driver.queue("dead")
    mail = driver.queue("mail", lease_ms=MINUTE, max_attempts=1, dead_letter_queue="dead")
    driver.send(mail)
    [held] = driver.claim(mail)
    driver.clock.advance(minutes=1)
    return_due(driver, mail)

    assert isinstance(driver.act(verb, held, is_late_ok=True), LeaseLost)
    assert driver.claim_ids(dead) == [held.id]


@pytest.mark.parametrize("verb", [Verb.FAIL, Verb.RELEASE, Verb.SNOOZE])
def test_a_late_act_on_a_released_message_counts(driver, mail, verb):
    driver.send(mail)
    [held] = driver.claim(mail)
    driver.act(verb, held, delay_ms=BACKOFF_MS)
    assert driver.get(held.id).state is State.WAITING

    assert isinstance(driver.act(Verb.EXTEND, held, is_late_ok=True), Acted)
    assert driver.get(held.id).attempts == 1
    assert isinstance(driver.act(Verb.RELEASE, held), Acted)
    assert driver.get(held.id).attempts == 0
    assert isinstance(driver.act(Verb.COMPLETE, held, is_late_ok=True), Acted)
    assert driver.find(held.id) is None


def test_a_late_completion_unblocks_the_next_of_its_group(driver):
    mail = driver.queue("mail", ordering=Ordering.GROUP, lease_ms=MINUTE)
    first, second = driver.send(mail, group="a"), driver.send(mail, group="a")
    [held] = driver.claim(mail)
    driver.clock.advance(minutes=1)
    return_due(driver, mail)

    driver.act(Verb.COMPLETE, held, is_late_ok=True)

    assert driver.find(first) is None
    assert driver.claim_ids(mail) == [second]


def test_late_and_timely_acts_in_one_batch_are_decided_separately(driver, mail):
    late, too_late = lose(driver, mail), lose(driver, mail)
    driver.claim(mail, 2)
    driver.act(Verb.RELEASE, driver.get(late.id))
    late = driver.get(late.id)
    driver.send(mail, priority=-1)
    [held] = driver.claim(mail)

    with driver.together():
        tickets = [
            driver.submit_act(Verb.COMPLETE, message, is_late_ok=is_late_ok)
            for message in (late, too_late, held)
            for is_late_ok in (True, False)
        ]

    answers = [type(ticket.result()[0]) for ticket in tickets]
    assert answers == [Acted, LeaseLost, LeaseLost, LeaseLost, Acted, LeaseLost]
    assert driver.counts(mail).done_total == 2


def test_the_outcome_of_a_message_is_found_by_its_number(driver, mail):
    held = lose(driver, mail)
    [done] = driver.claim(mail, 1)
    driver.complete(done)
    assert done.id == held.id
    back = lose(driver, mail)

    found = driver.read(lambda s: s.messages.by_numbers([held.message_no, back.message_no, 10**9]))

    assert found == [driver.get(back.id)]
    assert found[0].state is State.READY
    assert driver.read(lambda s: s.messages.by_numbers([])) == []
