"""A message that is sent in the caller's own transaction exists exactly if that is committed."""

from __future__ import annotations

import pytest

from penstock.domain.errors import PenstockError, QueueFull, QueueNotFound
from penstock.domain.limits import DAY
from penstock.domain.queue.counts import Counts
from penstock.domain.queue.queue import Ordering
from penstock.ports.store import Sent
from tests.factories import a_new_message, a_queue
from tests.store.callers.conftest import OpenWay
from tests.store.callers.ways import ADD, LOOK, Way
from tests.store.desk import Desk
from tests.store.recount import check_books


def send(desk: Desk, way: Way, queue, **draft) -> Sent | PenstockError:
    [answer] = way.send(desk.store, [a_new_message(queue, now=desk.now, **draft)])
    return answer


def accepted(answer: Sent | PenstockError) -> str:
    assert isinstance(answer, Sent), answer
    assert not answer.is_duplicate
    return answer.id


def test_after_the_commit_it_can_be_claimed(desk: Desk, way: Way) -> None:
    mail = desk.queue()
    way.run(ADD.format("a"))

    sent = accepted(send(desk, way, mail, body="hello"))
    assert desk.find(sent) is None
    way.commit()

    assert way.run(LOOK) == [("a",)]
    way.rollback()
    assert desk.claim_ids(mail) == [sent]
    check_books(desk)


def test_after_a_rollback_it_never_was(desk: Desk, way: Way) -> None:
    mail = desk.queue()
    way.run(ADD.format("a"))

    accepted(send(desk, way, mail, dedup_key="k"))
    way.rollback()

    assert way.run(LOOK) == []
    way.rollback()
    assert desk.claim_ids(mail) == []
    assert desk.read(lambda s: s.queues.counts([mail.queue_no])).get(mail.queue_no) in (
        None,
        Counts(),
    )
    desk.send(mail, dedup_key="k")  # nobody has taken the key


def test_it_may_be_the_first_thing_that_a_transaction_does(desk: Desk, way: Way) -> None:
    mail = desk.queue()

    sent = accepted(send(desk, way, mail))
    way.commit()

    assert desk.claim_ids(mail) == [sent]


def test_as_the_first_thing_it_can_be_rolled_back(desk: Desk, way: Way) -> None:
    mail = desk.queue()

    accepted(send(desk, way, mail))
    way.rollback()

    assert desk.claim_ids(mail) == []


def test_a_refusal_leaves_the_transaction_as_it_was(desk: Desk, way: Way) -> None:
    full = desk.queue(max_messages=1)
    desk.send(full)
    way.run(ADD.format("a"))

    assert isinstance(send(desk, way, full), QueueFull)
    assert isinstance(send(desk, way, a_queue(queue_no=999)), QueueNotFound)
    way.run(ADD.format("b"))
    way.commit()

    assert way.run(LOOK) == [("a",), ("b",)]
    way.rollback()
    check_books(desk)


def test_an_error_of_ours_takes_back_only_what_we_did(desk: Desk, way: Way) -> None:
    mail = desk.queue()
    way.run(ADD.format("a"))

    def fail(session) -> None:
        session.queues.change(mail.queue_no, is_paused=True, now=desk.now)
        raise QueueNotFound("nowhere")

    with pytest.raises(QueueNotFound):
        way.write(desk.store, fail)
    accepted(send(desk, way, mail))
    way.commit()

    assert way.run(LOOK) == [("a",)]
    way.rollback()
    assert len(desk.claim_ids(mail)) == 1  # not paused


def test_a_dedup_key_is_taken_only_by_a_commit(desk: Desk, way: Way) -> None:
    mail = desk.queue()

    first = accepted(send(desk, way, mail, dedup_key="k"))
    again = send(desk, way, mail, dedup_key="k")
    way.commit()

    assert isinstance(again, Sent)
    assert (again.id, again.is_duplicate) == (first, True)
    [answer] = desk.submit_send(mail, dedup_key="k").result(30)
    assert isinstance(answer, Sent)
    assert (answer.id, answer.is_duplicate) == (first, True)
    check_books(desk)


def test_a_group_keeps_its_order_over_both_ways_of_sending(desk: Desk, way: Way) -> None:
    ordered = desk.queue(ordering=Ordering.GROUP)
    ids = [desk.send(ordered, group="g")]
    ids.append(accepted(send(desk, way, ordered, group="g")))
    ids.append(accepted(send(desk, way, ordered, group="g")))
    way.commit()
    ids.append(desk.send(ordered, group="g"))

    claimed = []
    while messages := desk.claim(ordered, limit=10):
        [message] = messages
        claimed.append(message.id)
        desk.complete(message)

    assert claimed == ids


def test_many_go_at_once(desk: Desk, way: Way) -> None:
    mail = desk.queue()
    new = [a_new_message(mail, now=desk.now, body="%s $1 :x 'é'", attributes={"n": "1"})
           for _ in range(150)]  # fmt: skip

    answers = way.send(desk.store, new)
    way.commit()

    assert [a.id for a in answers if isinstance(a, Sent)] == [n.message.id for n in new]
    claimed = desk.submit_claim(mail, 200).result(30).messages
    assert {content.body for _, content in claimed} == {"%s $1 :x 'é'"}
    assert len(claimed) == 150
    check_books(desk)


def test_the_tables_of_a_new_day_are_there(desk: Desk, way: Way) -> None:
    mail = desk.queue()
    desk.clock.advance(ms=40 * DAY)
    way.run(ADD.format("a"))

    accepted(send(desk, way, mail))
    way.rollback()
    sent = accepted(send(desk, way, mail))
    way.commit()

    assert desk.claim_ids(mail) == [sent]


def test_two_callers_do_not_wait_for_each_others_counters(
    desk: Desk, open_way: OpenWay, backend: str
) -> None:
    if backend == "sqlite":
        return  # one writer at a time, whoever it is
    mail = desk.queue()
    one, other = open_way(), open_way()

    accepted(send(desk, one, mail))
    accepted(send(desk, other, mail))
    desk.send(mail)
    other.commit()
    one.commit()

    assert len(desk.claim_ids(mail)) == 3
    check_books(desk)


def test_a_write_may_make_a_queue(desk: Desk, way: Way) -> None:
    settings = a_queue().settings
    way.write(desk.store, lambda s: s.queues.add("new", settings, now=desk.now))
    assert desk.read(lambda s: s.queues.find("new")) is None
    way.commit()

    assert desk.read(lambda s: s.queues.find("new")) is not None


def test_it_keeps_to_the_limits_of_its_queue(desk: Desk, way: Way) -> None:
    mail = desk.queue(max_leased_per_group=1, is_fair=True)

    first, second = (accepted(send(desk, way, mail, group="g")) for _ in range(2))
    other = accepted(send(desk, way, mail, group="h"))
    way.commit()

    assert sorted(desk.claim_ids(mail)) == sorted([first, other])
    assert desk.get(second).lease_no == 0
    check_books(desk)
