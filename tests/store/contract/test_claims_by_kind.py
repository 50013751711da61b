"""Claims of some kinds, as if there were no other messages."""

import pytest

from penstock.domain.limits import MINUTE
from penstock.domain.message.lease import Verb
from penstock.domain.queue.queue import Ordering
from tests.factories import an_act


@pytest.fixture
def mail(driver):
    return driver.queue("mail", lease_ms=MINUTE)


def take(driver, queue, *kinds, limit=10, **wanted):
    return [m.id for m in driver.claim(queue, limit, kinds=kinds, **wanted)]


def test_only_messages_of_the_wanted_kinds_are_given_in_the_order_of_all(driver, mail):
    b1, a1, c1, a2, _, b2 = (
        driver.send(mail, kind=kind) for kind in ("b", "a", "c", "a", None, "b")
    )

    assert take(driver, mail, "a", "b", limit=1) == [b1]
    assert take(driver, mail, "a", "b", limit=2) == [a1, a2]
    assert take(driver, mail, "b", "c") == [c1, b2]
    assert driver.counts(mail).ready == 1


def test_the_more_urgent_comes_first_whatever_its_kind(driver, mail):
    later = driver.send(mail, kind="a", priority=1)
    urgent = driver.send(mail, kind="b", priority=-1)
    plain = driver.send(mail, kind="a")

    assert take(driver, mail, "a", "b") == [urgent, plain, later]


def test_kinds_without_messages_return_only_the_next_due_date(driver, mail):
    driver.send(mail, kind="a")
    driver.send(mail, kind="b", delay_ms=7)

    claimed = driver.submit_claim(mail, kinds=("b",)).result()

    assert (claimed.messages, claimed.next_due_at) == ([], driver.now + 7)


def test_a_message_that_falls_due_is_claimed_and_an_expired_one_is_not(driver, mail):
    driver.send(mail, kind="a", expires_in_ms=5)
    due = driver.send(mail, kind="a", delay_ms=5)
    driver.clock.advance(ms=5)

    assert take(driver, mail, "a") == [due]


def test_one_message_of_a_group_is_claimed_at_a_time(driver):
    orders = driver.queue(ordering=Ordering.GROUP)
    first = driver.send(orders, group="g", kind="a")
    second = driver.send(orders, group="g", kind="b")

    assert take(driver, orders, "b") == []
    [held] = driver.claim(orders, kinds=("a",))
    assert held.id == first
    driver.complete(held)
    assert take(driver, orders, "b") == [second]


def test_claims_of_one_batch_each_get_their_own_kinds(driver, mail):
    a1, b1, a2 = (driver.send(mail, kind=kind) for kind in "aba")

    with driver.together():
        tickets = [
            driver.submit_claim(mail, kinds=("a",)),
            driver.submit_claim(mail, kinds=("b",)),
            driver.submit_claim(mail, kinds=("a",)),
        ]

    given = [[m.id for m, _ in ticket.result().messages] for ticket in tickets]
    assert given == [[a1], [b1], [a2]]


def test_with_a_key_they_can_be_repeated(driver, mail):
    driver.send(mail, kind="a")
    driver.send(mail, kind="b")

    first = driver.claim(mail, 5, kinds=("b",), claim_key="x")
    again = driver.claim(mail, 5, kinds=("b",), claim_key="x")

    assert len(first) == 1
    assert again == first


def test_a_claim_first_completes_the_given_messages(driver, mail):
    driver.send(mail, kind="a")
    second = driver.send(mail, kind="a")
    [held] = driver.claim(mail, kinds=("a",))
    act = an_act(Verb.COMPLETE, held, now=driver.now)

    claimed = driver.submit_claim(mail, kinds=("a",), finishing=[act]).result()

    assert [m.id for m, _ in claimed.messages] == [second]
    assert [acted.id for acted in claimed.finished] == [held.id]


def test_a_lease_of_length_0_returns_each_message_once(driver, mail):
    ids = driver.send_many(mail, 3, kind="a")

    assert take(driver, mail, "a", lease_ms=0) == ids
