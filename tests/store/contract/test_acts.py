"""Acts on leases: the stored row must be what the pure function says."""

import pytest
from msgspec.structs import replace

from penstock.domain.errors import LeaseLost
from penstock.domain.limits import MINUTE
from penstock.domain.message import lease as leases
from penstock.domain.message import transfer
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import NEXT_ORDER, State
from penstock.ports.store import Acted
from tests.factories import a_leased_message, an_act

ENDED = (State.DONE, State.CANCELLED)
ENDING = [verb for verb in Verb if verb is not Verb.EXTEND]  # those that end a lease


@pytest.fixture
def mail(driver):
    return driver.queue("mail", lease_ms=MINUTE)


@pytest.fixture
def held(driver, mail):
    """Claimed a second ago, for the second time."""
    driver.send(mail, kind="k", entity_id="e", tags=("t", "u"), group="g", priority=2)
    driver.act(Verb.FAIL, *driver.claim(mail), delay_ms=0, text="first try")
    [held] = driver.claim(mail, claimed_by="worker-1")
    driver.clock.advance(seconds=1)
    return held


@pytest.mark.parametrize("delay_ms", [None, 5])
@pytest.mark.parametrize("verb", Verb)
@pytest.mark.parametrize("redelivery", ["front", "back"])
def test_every_act_changes_the_row_exactly_as_the_lifecycle_says(
    driver, mail, held, verb, delay_ms, redelivery
):
    queue = driver.change(mail, redelivery=redelivery)
    act = an_act(verb, held, now=driver.now, delay_ms=delay_ms, text="so", dice=0.9)
    expected = leases.apply(act, held, queue)

    [answer] = driver.store.act([act]).result()

    assert isinstance(answer, Acted)
    assert (answer.id, answer.state) == (held.id, expected.state)
    if expected.state in ENDED:
        assert driver.find(held.id) is None
        return
    assert answer.due_at == expected.due_at
    found = driver.get(held.id)
    if expected.order_no == NEXT_ORDER:
        assert found.order_no > held.order_no
        expected = replace(expected, order_no=found.order_no)
    assert found == expected


def test_a_stale_lease_can_neither_end_the_message_nor_change_it(driver, mail, held):
    driver.clock.advance(minutes=1)
    [now_held] = driver.claim(mail)

    for verb in Verb:
        assert isinstance(driver.act(verb, held, delay_ms=5), LeaseLost), verb

    assert driver.get(held.id) == now_held
    assert driver.endings() == []


def test_a_lease_released_and_claimed_again_at_the_same_instant_is_another_lease(driver, mail):
    driver.send(mail)
    [first] = driver.claim(mail)
    driver.act(Verb.RELEASE, first)
    [second] = driver.claim(mail)
    assert first.leased_at == second.leased_at

    for verb in Verb:
        assert isinstance(driver.act(verb, first), LeaseLost), verb

    assert driver.get(first.id) == second


def test_the_old_holder_of_a_message_that_was_brought_back_has_lost_its_lease(driver, mail, held):
    driver.clock.advance(minutes=1)
    driver.write(lambda s: s.maintenance.return_due(mail.queue_no, now=driver.now, limit=10))
    before = driver.get(held.id)

    for verb in Verb:
        assert isinstance(driver.act(verb, held), LeaseLost), verb

    assert driver.get(held.id) == before


def test_a_lease_number_reused_after_a_power_cut_is_another_lease(driver, held):
    before_the_cut = replace(held, leased_at=held.leased_at - 1)

    for verb in Verb:
        assert isinstance(driver.act(verb, before_the_cut), LeaseLost), verb

    assert driver.get(held.id) == held


def test_a_lease_on_a_missing_message_is_lost(driver, mail):
    unknown = a_leased_message(message_no=2**40, queue_no=mail.queue_no)

    for verb in Verb:
        assert isinstance(driver.act(verb, unknown), LeaseLost), verb


def test_a_late_act_counts_until_the_message_is_brought_back(driver, mail):
    driver.send_many(mail, len(Verb))
    messages = driver.claim(mail, 10)
    driver.clock.advance(minutes=10)

    for verb, message in zip(Verb, messages, strict=True):
        assert isinstance(driver.act(verb, message), Acted), verb


def test_a_lease_is_used_up_by_the_first_act_that_ends_it(driver, mail):
    driver.send_many(mail, len(ENDING))

    for first, message in zip(ENDING, driver.claim(mail, 10), strict=True):
        assert isinstance(driver.act(first, message), Acted), first
        for second in Verb:
            assert isinstance(driver.act(second, message), LeaseLost), (first, second)


def test_the_first_of_two_equal_receipts_in_one_batch_counts(driver, mail):
    driver.send_many(mail, len(ENDING))

    for verb, message in zip(ENDING, driver.claim(mail, 10), strict=True):
        act = an_act(verb, message, now=driver.now)
        first, second = driver.store.act([act, act]).result()
        assert isinstance(first, Acted), verb
        assert isinstance(second, LeaseLost), verb


def test_the_first_of_two_callers_with_the_same_receipt_in_one_batch_counts(driver, held):
    with driver.together():
        tickets = [driver.submit_act(Verb.COMPLETE, held) for _ in range(2)]

    [[first], [second]] = [ticket.result() for ticket in tickets]
    assert isinstance(first, Acted)
    assert isinstance(second, LeaseLost)
    assert len(driver.endings()) == 1


def test_a_stale_receipt_beside_the_current_one_in_one_batch_is_refused(driver, mail):
    driver.send_many(mail, len(Verb))
    old = driver.claim(mail, 10)
    driver.clock.advance(minutes=1)
    new = driver.claim(mail, 10)

    for verb, *both in zip(Verb, old, new, strict=True):
        acts = [an_act(verb, message, now=driver.now) for message in both]
        stale, present = driver.store.act(acts).result()
        assert isinstance(stale, LeaseLost), verb
        assert isinstance(present, Acted), verb


def test_several_acts_on_one_message_in_one_batch_happen_in_their_order(driver, held):
    verbs = [Verb.EXTEND, Verb.COMPLETE, Verb.FAIL]

    extended, completed, failed = driver.store.act(
        [an_act(verb, held, now=driver.now) for verb in verbs]
    ).result()

    assert (extended.state, completed.state) == (State.LEASED, State.DONE)
    assert isinstance(failed, LeaseLost)
    [ending] = driver.endings()
    assert (ending.outcome, ending.finished_at) == (State.DONE, driver.now)


def test_a_completion_after_a_release_in_one_batch_is_too_late(driver, held):
    verbs = [Verb.RELEASE, Verb.COMPLETE]

    released, completed = driver.store.act(
        [an_act(verb, held, now=driver.now) for verb in verbs]
    ).result()

    assert released.state is State.READY
    assert isinstance(completed, LeaseLost)


def test_messages_that_go_to_the_back_in_one_batch_keep_the_order_of_their_acts(driver):
    mail = driver.queue("mail", redelivery="back")
    driver.send_many(mail, 2)
    first, second = driver.claim(mail, 2)
    acts = [(Verb.EXTEND, first), (Verb.RELEASE, second), (Verb.RELEASE, first)]

    driver.store.act([an_act(verb, message, now=driver.now) for verb, message in acts]).result()

    assert driver.claim_ids(mail) == [second.id, first.id]


def test_a_mixed_batch_applies_each_act_to_its_message(driver, mail):
    driver.send_many(mail, len(Verb) + 1)
    messages = driver.claim(mail, 100)
    gone = messages.pop()
    driver.complete(gone)
    acts = [
        an_act(verb, message, now=driver.now, delay_ms=5)
        for verb, message in zip(Verb, messages, strict=True)
    ]
    acts.insert(3, an_act(Verb.COMPLETE, gone, now=driver.now))

    answers = driver.store.act(acts).result()

    assert isinstance(answers.pop(3), LeaseLost)
    assert {verb: answer.state for verb, answer in zip(Verb, answers, strict=True)} == {
        Verb.COMPLETE: State.DONE,
        Verb.FAIL: State.WAITING,
        Verb.RELEASE: State.WAITING,
        Verb.EXTEND: State.LEASED,
        Verb.SNOOZE: State.WAITING,
        Verb.BURY: State.DEAD,
        Verb.CANCEL: State.CANCELLED,
        Verb.TIME_OUT: State.DEAD,
        Verb.CRASH: State.READY,
    }
    assert [answer.id for answer in answers] == [message.id for message in messages]


def test_acts_of_several_callers_in_one_batch_each_get_their_own_answers(driver, mail):
    driver.send_many(mail, 3)
    first, second, third = driver.claim(mail, 3)

    with driver.together():
        one = driver.store.act([an_act(Verb.COMPLETE, m, now=driver.now) for m in (first, second)])
        other = driver.store.act([an_act(Verb.RELEASE, third, now=driver.now)])
        nothing = driver.store.act([])

    assert [answer.id for answer in one.result()] == [first.id, second.id]
    assert [answer.id for answer in other.result()] == [third.id]
    assert nothing.result() == []


def test_a_failure_on_the_last_attempt_is_answered_with_dead(driver, held):
    driver.change(driver.queues[0], max_attempts=2)

    answer = driver.act(Verb.FAIL, held, text="boom")

    assert answer.state is State.DEAD
    assert driver.get(held.id).last_error == "boom"


@pytest.mark.parametrize("verb", [Verb.FAIL, Verb.BURY])
def test_to_its_holder_a_message_that_went_to_the_dead_letter_queue_is_dead(driver, held, verb):
    dead = driver.queue("dead")
    mail = driver.change(driver.queues[0], max_attempts=2, dead_letter_queue="dead")
    act = an_act(verb, held, now=driver.now, text="so")

    [answer] = driver.store.act([act]).result()

    assert answer.state is State.DEAD
    letter = driver.get(held.id)
    died = leases.apply(act, held, mail)
    expected = transfer.dead_letter(died, dead, now=driver.now)
    assert letter == replace(expected, order_no=letter.order_no)
    assert letter.order_no > held.order_no


def test_a_lease_on_a_message_that_moved_to_another_queue_is_lost(driver, held):
    dead = driver.queue("dead")
    driver.change(driver.queues[0], dead_letter_queue="dead")
    driver.act(Verb.BURY, held)
    [letter] = driver.claim(dead)

    assert isinstance(driver.act(Verb.COMPLETE, held), LeaseLost)
    assert isinstance(driver.act(Verb.COMPLETE, letter), Acted)


def test_failures_and_claims_are_counted(driver, mail, held):
    driver.act(Verb.FAIL, held)

    counts = driver.counts(mail)

    assert (counts.failed_total, counts.claimed_total) == (2, 2)
