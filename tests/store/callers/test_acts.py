"""An act in the caller's own transaction counts exactly if that is committed."""

from __future__ import annotations

from penstock.domain.errors import LeaseLost
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import Ordering
from penstock.ports.store import Acted
from tests.factories import an_act
from tests.store.callers.ways import ADD, LOOK, Way
from tests.store.desk import Desk
from tests.store.recount import check_books


def act(desk: Desk, way: Way, verb: Verb, message, **fields):
    [answer] = way.act(desk.store, [an_act(verb, message, now=desk.now, **fields)])
    return answer


def test_a_completion_counts_after_the_commit(desk: Desk, way: Way) -> None:
    mail = desk.queue()
    sent = desk.send(mail)
    [message] = desk.claim(mail)
    way.run(ADD.format("done"))

    assert isinstance(act(desk, way, Verb.COMPLETE, message), Acted)
    assert desk.get(sent).state is State.LEASED
    way.commit()

    assert desk.find(sent) is None
    assert [ending.outcome for ending in desk.endings()] == [State.DONE]
    assert way.run(LOOK) == [("done",)]
    way.rollback()
    check_books(desk)


def test_after_a_rollback_the_lease_is_held_as_before(desk: Desk, way: Way) -> None:
    mail = desk.queue()
    sent = desk.send(mail)
    [message] = desk.claim(mail)
    way.run(ADD.format("done"))

    act(desk, way, Verb.COMPLETE, message)
    way.rollback()

    assert desk.get(sent).state is State.LEASED
    assert desk.endings() == []
    check_books(desk)
    desk.complete(message)


def test_who_has_lost_the_lease_hears_so_and_the_rest_of_the_work_stands(
    desk: Desk, way: Way
) -> None:
    mail = desk.queue()
    desk.send(mail)
    [message] = desk.claim(mail)
    desk.act(Verb.RELEASE, message)
    way.run(ADD.format("a"))

    assert isinstance(act(desk, way, Verb.COMPLETE, message), LeaseLost)
    way.run(ADD.format("b"))
    way.commit()

    assert way.run(LOOK) == [("a",), ("b",)]
    way.rollback()
    check_books(desk)


def test_a_failure_is_an_attempt_only_if_it_is_committed(desk: Desk, way: Way) -> None:
    mail = desk.queue()
    sent = desk.send(mail)
    [message] = desk.claim(mail)

    act(desk, way, Verb.FAIL, message, text="oops")
    way.rollback()
    assert desk.attempts(sent) == []
    act(desk, way, Verb.FAIL, message, text="oops")
    way.commit()

    assert [attempt.error for attempt in desk.attempts(sent)] == ["oops"]
    desk.sent_ids = [sent]
    check_books(desk)


def test_the_next_of_a_group_comes_after_the_commit(desk: Desk, way: Way) -> None:
    ordered = desk.queue(ordering=Ordering.GROUP)
    first, second = desk.send(ordered, group="g"), desk.send(ordered, group="g")
    [message] = desk.claim(ordered, limit=10)
    assert message.id == first

    act(desk, way, Verb.COMPLETE, message)
    way.commit()

    assert desk.claim_ids(ordered) == [second]
    check_books(desk)


def test_a_completion_lets_the_next_of_a_limited_group_come(desk: Desk, way: Way) -> None:
    mail = desk.queue(max_leased=1, max_leased_per_group=1)
    desk.send_many(mail, 2, group="g")
    [message] = desk.claim(mail, 2)

    assert isinstance(act(desk, way, Verb.COMPLETE, message), Acted)
    way.commit()

    assert len(desk.claim(mail, 2)) == 1
    check_books(desk)
