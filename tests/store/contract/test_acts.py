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
def mail(desk):
    return desk.queue("mail", lease_ms=MINUTE)


@pytest.fixture
def held(desk, mail):
    """Claimed a second ago, for the second time."""
    desk.send(mail, kind="k", entity_id="e", tags=("t", "u"), group="g", priority=2)
    desk.act(Verb.FAIL, *desk.claim(mail), delay_ms=0, text="first try")
    [held] = desk.claim(mail, claimed_by="worker-1")
    desk.clock.advance(seconds=1)
    return held


@pytest.mark.parametrize("delay_ms", [None, 5])
@pytest.mark.parametrize("verb", Verb)
@pytest.mark.parametrize("redelivery", ["front", "back"])
def test_every_act_changes_the_row_exactly_as_the_lifecycle_says(
    desk, mail, held, verb, delay_ms, redelivery
):
    queue = desk.change(mail, redelivery=redelivery)
    act = an_act(verb, held, now=desk.now, delay_ms=delay_ms, text="so", dice=0.9)
    expected = leases.apply(act, held, queue)

    [answer] = desk.store.act([act]).result()

    assert isinstance(answer, Acted)
    assert (answer.id, answer.state) == (held.id, expected.state)
    if expected.state in ENDED:
        assert desk.find(held.id) is None
        return
    assert answer.due_at == expected.due_at
    found = desk.get(held.id)
    if expected.order_no == NEXT_ORDER:
        assert found.order_no > held.order_no
        expected = replace(expected, order_no=found.order_no)
    assert found == expected


def test_a_stale_lease_can_neither_end_the_message_nor_change_it(desk, mail, held):
    desk.clock.advance(minutes=1)
    [now_held] = desk.claim(mail)

    for verb in Verb:
        assert isinstance(desk.act(verb, held, delay_ms=5), LeaseLost), verb

    assert desk.get(held.id) == now_held
    assert desk.endings() == []


def test_a_lease_given_back_and_given_again_at_the_same_instant_is_another_lease(desk, mail):
    desk.send(mail)
    [first] = desk.claim(mail)
    desk.act(Verb.RELEASE, first)
    [second] = desk.claim(mail)
    assert first.leased_at == second.leased_at

    for verb in Verb:
        assert isinstance(desk.act(verb, first), LeaseLost), verb

    assert desk.get(first.id) == second


def test_a_message_that_was_brought_back_is_no_longer_its_old_holders(desk, mail, held):
    desk.clock.advance(minutes=1)
    desk.write(lambda s: s.tidying.bring_back(mail.queue_no, now=desk.now, limit=10))
    before = desk.get(held.id)

    for verb in Verb:
        assert isinstance(desk.act(verb, held), LeaseLost), verb

    assert desk.get(held.id) == before


def test_a_lease_number_given_again_after_a_power_cut_is_not_the_same_lease(desk, held):
    before_the_cut = replace(held, leased_at=held.leased_at - 1)

    for verb in Verb:
        assert isinstance(desk.act(verb, before_the_cut), LeaseLost), verb

    assert desk.get(held.id) == held


def test_a_lease_on_nothing_is_a_lost_one(desk, mail):
    unknown = a_leased_message(message_no=2**40, queue_no=mail.queue_no)

    for verb in Verb:
        assert isinstance(desk.act(verb, unknown), LeaseLost), verb


def test_late_is_fine_while_nobody_has_brought_the_message_back(desk, mail):
    desk.send_many(mail, len(Verb))
    messages = desk.claim(mail, 10)
    desk.clock.advance(minutes=10)

    for verb, message in zip(Verb, messages, strict=True):
        assert isinstance(desk.act(verb, message), Acted), verb


def test_a_lease_is_used_up_by_the_first_act_that_ends_it(desk, mail):
    desk.send_many(mail, len(ENDING))

    for first, message in zip(ENDING, desk.claim(mail, 10), strict=True):
        assert isinstance(desk.act(first, message), Acted), first
        for second in Verb:
            assert isinstance(desk.act(second, message), LeaseLost), (first, second)


def test_of_the_same_receipt_twice_in_one_batch_the_first_has_it(desk, mail):
    desk.send_many(mail, len(ENDING))

    for verb, message in zip(ENDING, desk.claim(mail, 10), strict=True):
        act = an_act(verb, message, now=desk.now)
        first, second = desk.store.act([act, act]).result()
        assert isinstance(first, Acted), verb
        assert isinstance(second, LeaseLost), verb


def test_of_two_callers_with_the_same_receipt_in_one_batch_the_first_has_it(desk, held):
    with desk.together():
        tickets = [desk.submit_act(Verb.COMPLETE, held) for _ in range(2)]

    [[first], [second]] = [ticket.result() for ticket in tickets]
    assert isinstance(first, Acted)
    assert isinstance(second, LeaseLost)
    assert len(desk.endings()) == 1


def test_a_stale_receipt_beside_the_present_one_in_one_batch_is_told_apart(desk, mail):
    desk.send_many(mail, len(Verb))
    old = desk.claim(mail, 10)
    desk.clock.advance(minutes=1)
    new = desk.claim(mail, 10)

    for verb, *both in zip(Verb, old, new, strict=True):
        acts = [an_act(verb, message, now=desk.now) for message in both]
        stale, present = desk.store.act(acts).result()
        assert isinstance(stale, LeaseLost), verb
        assert isinstance(present, Acted), verb


def test_several_acts_on_one_message_in_one_batch_happen_in_their_order(desk, held):
    verbs = [Verb.EXTEND, Verb.COMPLETE, Verb.FAIL]

    extended, completed, failed = desk.store.act(
        [an_act(verb, held, now=desk.now) for verb in verbs]
    ).result()

    assert (extended.state, completed.state) == (State.LEASED, State.DONE)
    assert isinstance(failed, LeaseLost)
    [ending] = desk.endings()
    assert (ending.outcome, ending.finished_at) == (State.DONE, desk.now)


def test_a_completion_after_a_release_in_one_batch_is_too_late(desk, held):
    verbs = [Verb.RELEASE, Verb.COMPLETE]

    released, completed = desk.store.act(
        [an_act(verb, held, now=desk.now) for verb in verbs]
    ).result()

    assert released.state is State.READY
    assert isinstance(completed, LeaseLost)


def test_those_who_go_to_the_back_in_one_batch_stand_there_in_the_order_of_their_going(desk):
    mail = desk.queue("mail", redelivery="back")
    desk.send_many(mail, 2)
    first, second = desk.claim(mail, 2)
    acts = [(Verb.EXTEND, first), (Verb.RELEASE, second), (Verb.RELEASE, first)]

    desk.store.act([an_act(verb, message, now=desk.now) for verb, message in acts]).result()

    assert desk.claim_ids(mail) == [second.id, first.id]


def test_a_mixed_batch_does_to_each_message_what_was_asked_for_it(desk, mail):
    desk.send_many(mail, len(Verb) + 1)
    messages = desk.claim(mail, 100)
    gone = messages.pop()
    desk.complete(gone)
    acts = [
        an_act(verb, message, now=desk.now, delay_ms=5)
        for verb, message in zip(Verb, messages, strict=True)
    ]
    acts.insert(3, an_act(Verb.COMPLETE, gone, now=desk.now))

    answers = desk.store.act(acts).result()

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


def test_acts_of_several_callers_in_one_batch_each_get_their_own_answers(desk, mail):
    desk.send_many(mail, 3)
    first, second, third = desk.claim(mail, 3)

    with desk.together():
        one = desk.store.act([an_act(Verb.COMPLETE, m, now=desk.now) for m in (first, second)])
        other = desk.store.act([an_act(Verb.RELEASE, third, now=desk.now)])
        nothing = desk.store.act([])

    assert [answer.id for answer in one.result()] == [first.id, second.id]
    assert [answer.id for answer in other.result()] == [third.id]
    assert nothing.result() == []


def test_a_failure_on_the_last_attempt_is_told_as_a_death(desk, held):
    desk.change(desk.queues[0], max_attempts=2)

    answer = desk.act(Verb.FAIL, held, text="boom")

    assert answer.state is State.DEAD
    assert desk.get(held.id).last_error == "boom"


@pytest.mark.parametrize("verb", [Verb.FAIL, Verb.BURY])
def test_to_its_holder_a_message_that_went_to_the_dead_letter_queue_is_dead(desk, held, verb):
    dead = desk.queue("dead")
    mail = desk.change(desk.queues[0], max_attempts=2, dead_letter_queue="dead")
    act = an_act(verb, held, now=desk.now, text="so")

    [answer] = desk.store.act([act]).result()

    assert answer.state is State.DEAD
    letter = desk.get(held.id)
    died = leases.apply(act, held, mail)
    expected = transfer.dead_letter(died, dead, now=desk.now)
    assert letter == replace(expected, order_no=letter.order_no)
    assert letter.order_no > held.order_no


def test_a_lease_on_a_message_that_moved_to_another_queue_is_lost(desk, held):
    dead = desk.queue("dead")
    desk.change(desk.queues[0], dead_letter_queue="dead")
    desk.act(Verb.BURY, held)
    [letter] = desk.claim(dead)

    assert isinstance(desk.act(Verb.COMPLETE, held), LeaseLost)
    assert isinstance(desk.act(Verb.COMPLETE, letter), Acted)


def test_failures_and_claims_are_counted(desk, mail, held):
    desk.act(Verb.FAIL, held)

    counts = desk.counts(mail)

    assert (counts.failed_total, counts.claimed_total) == (2, 2)
