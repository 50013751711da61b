"""Claims of some kinds: as if there were no other messages."""

import pytest

from penstock.domain.limits import MINUTE
from penstock.domain.message.lease import Verb
from penstock.domain.queue.queue import Ordering
from tests.factories import an_act


@pytest.fixture
def mail(desk):
    return desk.queue("mail", lease_ms=MINUTE)


def take(desk, queue, *kinds, limit=10, **wanted):
    return [m.id for m in desk.claim(queue, limit, kinds=kinds, **wanted)]


def test_only_messages_of_the_wanted_kinds_are_given_in_the_order_of_all(desk, mail):
    b1, a1, c1, a2, _, b2 = (desk.send(mail, kind=kind) for kind in ("b", "a", "c", "a", None, "b"))

    assert take(desk, mail, "a", "b", limit=1) == [b1]
    assert take(desk, mail, "a", "b", limit=2) == [a1, a2]
    assert take(desk, mail, "b", "c") == [c1, b2]
    assert desk.counts(mail).ready == 1


def test_the_more_urgent_comes_first_whatever_its_kind(desk, mail):
    later = desk.send(mail, kind="a", priority=1)
    urgent = desk.send(mail, kind="b", priority=-1)
    plain = desk.send(mail, kind="a")

    assert take(desk, mail, "a", "b") == [urgent, plain, later]


def test_kinds_that_nobody_sent_give_nothing_but_the_next_due_date(desk, mail):
    desk.send(mail, kind="a")
    desk.send(mail, kind="b", delay_ms=7)

    claimed = desk.submit_claim(mail, kinds=("b",)).result()

    assert (claimed.messages, claimed.next_due_at) == ([], desk.now + 7)


def test_what_falls_due_is_found_and_what_has_expired_is_not(desk, mail):
    desk.send(mail, kind="a", expires_in_ms=5)
    due = desk.send(mail, kind="a", delay_ms=5)
    desk.clock.advance(ms=5)

    assert take(desk, mail, "a") == [due]


def test_of_a_group_one_at_a_time(desk):
    orders = desk.queue(ordering=Ordering.GROUP)
    first = desk.send(orders, group="g", kind="a")
    second = desk.send(orders, group="g", kind="b")

    assert take(desk, orders, "b") == []
    [held] = desk.claim(orders, kinds=("a",))
    assert held.id == first
    desk.complete(held)
    assert take(desk, orders, "b") == [second]


def test_claims_of_one_batch_each_get_their_own_kinds(desk, mail):
    a1, b1, a2 = (desk.send(mail, kind=kind) for kind in "aba")

    with desk.together():
        tickets = [
            desk.submit_claim(mail, kinds=("a",)),
            desk.submit_claim(mail, kinds=("b",)),
            desk.submit_claim(mail, kinds=("a",)),
        ]

    given = [[m.id for m, _ in ticket.result().messages] for ticket in tickets]
    assert given == [[a1], [b1], [a2]]


def test_with_a_key_they_can_be_repeated(desk, mail):
    desk.send(mail, kind="a")
    desk.send(mail, kind="b")

    first = desk.claim(mail, 5, kinds=("b",), claim_key="x")
    again = desk.claim(mail, 5, kinds=("b",), claim_key="x")

    assert len(first) == 1
    assert again == first


def test_what_is_done_is_completed_before(desk, mail):
    desk.send(mail, kind="a")
    second = desk.send(mail, kind="a")
    [held] = desk.claim(mail, kinds=("a",))
    act = an_act(Verb.COMPLETE, held, now=desk.now)

    claimed = desk.submit_claim(mail, kinds=("a",), finishing=[act]).result()

    assert [m.id for m, _ in claimed.messages] == [second]
    assert [acted.id for acted in claimed.finished] == [held.id]


def test_a_lease_of_no_length_gives_each_once(desk, mail):
    ids = desk.send_many(mail, 3, kind="a")

    assert take(desk, mail, "a", lease_ms=0) == ids
