"""Claims with a key: whoever did not hear the answer asks again and gets the same."""

import pytest

from penstock.domain.errors import ClaimNotRepeatable, PenstockError
from penstock.domain.limits import MINUTE
from penstock.domain.message.claim_key import KEPT_MS
from penstock.domain.message.lease import Lease, Verb
from penstock.domain.queue.queue import Ordering
from penstock.ports.store import Claimed
from tests.store.desk import WAIT_S, Desk


@pytest.fixture
def mail(desk):
    return desk.queue("mail", lease_ms=MINUTE)


def claim(desk, queue, limit=10, claim_key="k", **wanted):
    return desk.claim(queue, limit, claim_key=claim_key, **wanted)


def refused(desk, queue, **wanted):
    with pytest.raises(ClaimNotRepeatable):
        claim(desk, queue, **wanted)
    return True


def test_the_same_key_gives_the_same_messages_under_the_same_leases(desk, mail):
    ids = [desk.send(mail) for _ in range(3)]
    first = claim(desk, mail, 2)
    desk.send(mail, priority=-1)
    desk.clock.advance(ms=MINUTE - 1)

    again = claim(desk, mail, 2)

    assert [message.id for message in again] == ids[:2]
    assert [Lease.of(message) for message in again] == [Lease.of(message) for message in first]
    assert [message.attempts for message in again] == [1, 1]
    assert desk.counts(mail).claimed_total == 2
    for message in first:
        desk.complete(message)


@pytest.mark.parametrize("limit", [1, 2, 10])
def test_what_is_given_again_is_all_that_was_given_whatever_is_asked_for(desk, mail, limit):
    ids = [desk.send(mail) for _ in range(5)]
    claim(desk, mail, 2)

    assert [message.id for message in claim(desk, mail, limit, in_a_row=True)] == ids[:2]


def test_what_was_sent_comes_with_it_again(desk, mail):
    desk.send(mail, body='"hello"', attributes={"a": "b"})

    first, again = (desk.submit_claim(mail, claim_key="k").result(WAIT_S) for _ in range(2))

    assert again.messages == first.messages


def test_the_leases_are_counted_anew_each_time(desk, mail):
    desk.send(mail)
    claim(desk, mail)
    for _ in range(4):
        desk.clock.advance(ms=MINUTE - 1)
        [again] = claim(desk, mail)
        assert again.due_at == desk.now + MINUTE == desk.get(again.id).due_at

    desk.clock.advance(ms=1)
    [again] = claim(desk, mail, lease_ms=5)
    assert again.due_at == desk.now + 5


def test_a_key_is_remembered_for_some_minutes_from_the_first_claim(desk):
    mail = desk.queue(lease_ms=10 * MINUTE)
    first, second = desk.send(mail), desk.send(mail)
    claim(desk, mail, 1)
    desk.clock.advance(ms=KEPT_MS - 1)
    assert [message.id for message in claim(desk, mail, 1)] == [first]

    desk.clock.advance(ms=1)

    assert [message.id for message in claim(desk, mail, 1)] == [second]
    assert [message.id for message in claim(desk, mail, 1)] == [second]


def test_a_claim_by_somebody_else_in_the_same_instant_shows(desk, mail):
    desk.send(mail)
    [held] = claim(desk, mail)
    desk.act(Verb.EXTEND, held, delay_ms=0)
    [other] = desk.claim(mail)
    assert (other.leased_at, other.due_at) == (held.leased_at, held.due_at)

    assert refused(desk, mail)


@pytest.mark.parametrize("verb", Verb)
def test_once_something_was_done_with_one_of_them_it_cannot_be_repeated(desk, mail, verb):
    for _ in range(3):
        desk.send(mail)
    _, held = claim(desk, mail, 2)
    desk.act(verb, held, delay_ms=MINUTE + 1)

    assert refused(desk, mail)
    assert refused(desk, mail)
    is_back_at_once = verb is Verb.CRASH
    assert len(claim(desk, mail, 2, claim_key="another")) == 1 + is_back_at_once


def test_once_a_lease_ran_out_it_cannot_be_repeated(desk, mail):
    desk.send(mail)
    claim(desk, mail)
    desk.clock.advance(ms=MINUTE)

    assert refused(desk, mail)
    [other] = desk.claim(mail)
    assert other.lease_no == 2
    assert refused(desk, mail)
    assert desk.get(other.id) == other


def test_what_was_purged_cannot_be_had_again(desk, mail):
    desk.send(mail)
    claim(desk, mail)
    desk.write(lambda s: s.messages.purge(mail.queue_no, limit=10, now=desk.now))

    assert refused(desk, mail)


def test_nothing_is_not_remembered(desk, mail):
    assert claim(desk, mail) == []
    message_id = desk.send(mail)

    assert [message.id for message in claim(desk, mail)] == [message_id]


def test_keys_are_of_their_queue_and_of_no_other(desk, mail):
    post = desk.queue("post")
    here, there = desk.send(mail), desk.send(post)

    assert [message.id for message in claim(desk, mail)] == [here]
    assert [message.id for message in claim(desk, post)] == [there]


def test_claims_without_a_key_are_never_repeated(desk, mail):
    ids = [desk.send(mail) for _ in range(2)]

    taken = [desk.claim(mail)[0].id for _ in range(2)]

    assert taken == ids


def test_the_same_key_twice_in_one_batch_gives_the_same(desk, mail):
    ids = [desk.send(mail) for _ in range(2)]

    with desk.together():
        tickets = [desk.submit_claim(mail, claim_key="k") for _ in range(3)]
        other = desk.submit_claim(mail)

    answers = [[m.id for m, _ in ticket.result(WAIT_S).messages] for ticket in tickets]
    assert [m.id for m, _ in other.result(WAIT_S).messages] == [ids[0]]
    assert answers == [[ids[1]]] * 3


def test_a_claim_that_cannot_be_repeated_disturbs_no_other_of_its_batch(desk, mail):
    for _ in range(3):
        desk.send(mail)
    desk.complete(*claim(desk, mail, 1))

    with desk.together():
        tickets = [desk.submit_claim(mail, claim_key=key) for key in ("k", None, "l")]

    answers: list[Claimed | PenstockError] = []
    for ticket in tickets:
        try:
            answers.append(ticket.result(WAIT_S))
        except PenstockError as error:
            answers.append(error)
    assert isinstance(answers[0], ClaimNotRepeatable)
    assert [len(a.messages) for a in answers[1:] if isinstance(a, Claimed)] == [1, 1]


def test_a_run_is_repeated_in_its_order(desk):
    mail = desk.queue("mail", ordering=Ordering.GROUP, lease_ms=MINUTE)
    a1, b1, a2, a3 = (desk.send(mail, group=group) for group in "abaa")
    claim(desk, mail, 3, in_a_row=True)
    desk.clock.advance(ms=5)

    again = claim(desk, mail, 3, in_a_row=True)

    assert [message.id for message in again] == [a1, a2, a3]
    assert [message.id for message in claim(desk, mail, claim_key="l")] == [b1]


def test_a_paused_queue_repeats_nothing(desk, mail):
    desk.send(mail)
    claim(desk, mail)
    desk.pause(mail)

    assert claim(desk, mail) == []

    desk.pause(mail, is_paused=False)
    assert len(claim(desk, mail)) == 1


def test_a_store_that_was_closed_remembers(open_store, desk, mail):
    message_id = desk.send(mail)
    [first] = claim(desk, mail)
    desk.store.close()

    again = Desk(open_store(), desk.clock)
    try:
        [message] = claim(again, mail)
        assert (message.id, Lease.of(message)) == (message_id, Lease.of(first))
    finally:
        desk.store = again.store


def test_the_duty_forgets_what_is_not_repeated_any_more(desk, mail):
    for key in ("a", "b", "c"):
        desk.send(mail)
        claim(desk, mail, 1, claim_key=key)
    desk.clock.advance(ms=KEPT_MS - 1)
    desk.send(mail)
    claim(desk, mail, 1, claim_key="new")
    desk.clock.advance(ms=1)

    forgotten = [
        desk.write(lambda s: s.tidying.forget_claims(now=desk.now, limit=2)) for _ in range(3)
    ]

    assert forgotten == [2, 1, 0]
    assert len(claim(desk, mail, 1, claim_key="new")) == 1
