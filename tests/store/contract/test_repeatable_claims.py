"""Claims with a key: a client that lost the answer repeats the claim and gets the same."""

import pytest

from penstock.domain.errors import ClaimNotRepeatable, PenstockError
from penstock.domain.limits import MINUTE
from penstock.domain.message.claim_key import KEPT_MS
from penstock.domain.message.lease import Lease, Verb
from penstock.domain.queue.queue import Ordering
from penstock.ports.store import Claimed
from tests.store.driver import WAIT_S, StoreDriver


@pytest.fixture
def mail(driver):
    return driver.queue("mail", lease_ms=MINUTE)


def claim(driver, queue, limit=10, claim_key="k", **wanted):
    return driver.claim(queue, limit, claim_key=claim_key, **wanted)


def refused(driver, queue, **wanted):
    with pytest.raises(ClaimNotRepeatable):
        claim(driver, queue, **wanted)
    return True


def test_the_same_key_gives_the_same_messages_under_the_same_leases(driver, mail):
    ids = [driver.send(mail) for _ in range(3)]
    first = claim(driver, mail, 2)
    driver.send(mail, priority=-1)
    driver.clock.advance(ms=MINUTE - 1)

    again = claim(driver, mail, 2)

    assert [message.id for message in again] == ids[:2]
    assert [Lease.of(message) for message in again] == [Lease.of(message) for message in first]
    assert [message.attempts for message in again] == [1, 1]
    assert driver.counts(mail).claimed_total == 2
    for message in first:
        driver.complete(message)


@pytest.mark.parametrize("limit", [1, 2, 10])
def test_a_repeated_claim_returns_everything_whatever_its_limit(driver, mail, limit):
    ids = [driver.send(mail) for _ in range(5)]
    claim(driver, mail, 2)

    assert [message.id for message in claim(driver, mail, limit, in_a_row=True)] == ids[:2]


def test_a_repeated_claim_returns_the_bodies_again(driver, mail):
    driver.send(mail, body='"hello"', attributes={"a": "b"})

    first, again = (driver.submit_claim(mail, claim_key="k").result(WAIT_S) for _ in range(2))

    assert again.messages == first.messages


def test_each_repetition_renews_the_leases(driver, mail):
    driver.send(mail)
    claim(driver, mail)
    for _ in range(4):
        driver.clock.advance(ms=MINUTE - 1)
        [again] = claim(driver, mail)
        assert again.due_at == driver.now + MINUTE == driver.get(again.id).due_at

    driver.clock.advance(ms=1)
    [again] = claim(driver, mail, lease_ms=5)
    assert again.due_at == driver.now + 5


def test_a_key_is_remembered_for_some_minutes_from_the_first_claim(driver):
    mail = driver.queue(lease_ms=10 * MINUTE)
    first, second = driver.send(mail), driver.send(mail)
    claim(driver, mail, 1)
    driver.clock.advance(ms=KEPT_MS - 1)
    assert [message.id for message in claim(driver, mail, 1)] == [first]

    driver.clock.advance(ms=1)

    assert [message.id for message in claim(driver, mail, 1)] == [second]
    assert [message.id for message in claim(driver, mail, 1)] == [second]


def test_a_claim_by_another_worker_at_the_same_instant_is_detected(driver, mail):
    driver.send(mail)
    [held] = claim(driver, mail)
    driver.act(Verb.EXTEND, held, delay_ms=0)
    [other] = driver.claim(mail)
    assert (other.leased_at, other.due_at) == (held.leased_at, held.due_at)

    assert refused(driver, mail)


@pytest.mark.parametrize("verb", Verb)
def test_a_claim_cannot_be_repeated_after_an_act_on_one_of_its_messages(driver, mail, verb):
    for _ in range(3):
        driver.send(mail)
    _, held = claim(driver, mail, 2)
    driver.act(verb, held, delay_ms=MINUTE + 1)

    assert refused(driver, mail)
    assert refused(driver, mail)
    is_back_at_once = verb is Verb.CRASH
    assert len(claim(driver, mail, 2, claim_key="another")) == 1 + is_back_at_once


def test_a_claim_cannot_be_repeated_after_a_lease_has_expired(driver, mail):
    driver.send(mail)
    claim(driver, mail)
    driver.clock.advance(ms=MINUTE)

    assert refused(driver, mail)
    [other] = driver.claim(mail)
    assert other.lease_no == 2
    assert refused(driver, mail)
    assert driver.get(other.id) == other


def test_a_claim_cannot_be_repeated_after_a_purge(driver, mail):
    driver.send(mail)
    claim(driver, mail)
    driver.write(lambda s: s.messages.purge(mail.queue_no, limit=10, now=driver.now))

    assert refused(driver, mail)


def test_an_empty_claim_is_not_remembered(driver, mail):
    assert claim(driver, mail) == []
    message_id = driver.send(mail)

    assert [message.id for message in claim(driver, mail)] == [message_id]


def test_claim_keys_are_per_queue(driver, mail):
    post = driver.queue("post")
    here, there = driver.send(mail), driver.send(post)

    assert [message.id for message in claim(driver, mail)] == [here]
    assert [message.id for message in claim(driver, post)] == [there]


def test_claims_without_a_key_are_never_repeated(driver, mail):
    ids = [driver.send(mail) for _ in range(2)]

    taken = [driver.claim(mail)[0].id for _ in range(2)]

    assert taken == ids


def test_the_same_key_twice_in_one_batch_gives_the_same(driver, mail):
    ids = [driver.send(mail) for _ in range(2)]

    with driver.together():
        tickets = [driver.submit_claim(mail, claim_key="k") for _ in range(3)]
        other = driver.submit_claim(mail)

    answers = [[m.id for m, _ in ticket.result(WAIT_S).messages] for ticket in tickets]
    assert [m.id for m, _ in other.result(WAIT_S).messages] == [ids[0]]
    assert answers == [[ids[1]]] * 3


def test_a_claim_that_cannot_be_repeated_does_not_affect_its_batch(driver, mail):
    for _ in range(3):
        driver.send(mail)
    driver.complete(*claim(driver, mail, 1))

    with driver.together():
        tickets = [driver.submit_claim(mail, claim_key=key) for key in ("k", None, "l")]

    answers: list[Claimed | PenstockError] = []
    for ticket in tickets:
        try:
            answers.append(ticket.result(WAIT_S))
        except PenstockError as error:
            answers.append(error)
    assert isinstance(answers[0], ClaimNotRepeatable)
    assert [len(a.messages) for a in answers[1:] if isinstance(a, Claimed)] == [1, 1]


def test_a_run_is_repeated_in_its_order(driver):
    mail = driver.queue("mail", ordering=Ordering.GROUP, lease_ms=MINUTE)
    a1, b1, a2, a3 = (driver.send(mail, group=group) for group in "abaa")
    claim(driver, mail, 3, in_a_row=True)
    driver.clock.advance(ms=5)

    again = claim(driver, mail, 3, in_a_row=True)

    assert [message.id for message in again] == [a1, a2, a3]
    assert [message.id for message in claim(driver, mail, claim_key="l")] == [b1]


def test_a_paused_queue_repeats_nothing(driver, mail):
    driver.send(mail)
    claim(driver, mail)
    driver.pause(mail)

    assert claim(driver, mail) == []

    driver.pause(mail, is_paused=False)
    assert len(claim(driver, mail)) == 1


def test_claim_keys_survive_a_restart(open_store, driver, mail):
    message_id = driver.send(mail)
    [first] = claim(driver, mail)
    driver.store.close()

    again = StoreDriver(open_store(), driver.clock)
    try:
        [message] = claim(again, mail)
        assert (message.id, Lease.of(message)) == (message_id, Lease.of(first))
    finally:
        driver.store = again.store


def test_the_duty_forgets_old_claim_keys(driver, mail):
    for key in ("a", "b", "c"):
        driver.send(mail)
        claim(driver, mail, 1, claim_key=key)
    driver.clock.advance(ms=KEPT_MS - 1)
    driver.send(mail)
    claim(driver, mail, 1, claim_key="new")
    driver.clock.advance(ms=1)

    forgotten = [
        driver.write(lambda s: s.maintenance.forget_claims(now=driver.now, limit=2))
        for _ in range(3)
    ]

    assert forgotten == [2, 1, 0]
    assert len(claim(driver, mail, 1, claim_key="new")) == 1
