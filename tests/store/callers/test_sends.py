"""A message that is sent in the caller's own transaction exists if that is committed."""

from __future__ import annotations

import pytest

from penstock.domain.errors import PenstockError, QueueFull, QueueNotFound
from penstock.domain.limits import DAY
from penstock.domain.queue.queue import Counts, Ordering
from penstock.ports.store import Sent
from tests.factories import a_new_message, a_queue
from tests.store.callers.conftest import OpenTransaction
from tests.store.callers.transaction_kinds import ADD, LOOK, CallerTransaction, each_driver
from tests.store.counter_checks import check_counters
from tests.store.driver import StoreDriver


def send(
    driver: StoreDriver, transaction: CallerTransaction, queue, **draft
) -> Sent | PenstockError:
    [answer] = transaction.send(driver.store, [a_new_message(queue, now=driver.now, **draft)])
    return answer


def accepted(answer: Sent | PenstockError) -> str:
    assert isinstance(answer, Sent), answer
    assert not answer.is_duplicate
    return answer.id


def test_after_the_commit_it_can_be_claimed(
    driver: StoreDriver, transaction: CallerTransaction
) -> None:
    mail = driver.queue()
    transaction.run(ADD.format("a"))

    sent = accepted(send(driver, transaction, mail, body="hello"))
    assert driver.find(sent) is None
    transaction.commit()

    assert transaction.run(LOOK) == [("a",)]
    transaction.rollback()
    assert driver.claim_ids(mail) == [sent]
    check_counters(driver)


def test_after_a_rollback_the_message_does_not_exist(
    driver: StoreDriver, transaction: CallerTransaction
) -> None:
    mail = driver.queue()
    transaction.run(ADD.format("a"))

    accepted(send(driver, transaction, mail, dedup_key="k"))
    transaction.rollback()

    assert transaction.run(LOOK) == []
    transaction.rollback()
    assert driver.claim_ids(mail) == []
    assert driver.read(lambda s: s.queues.counts([mail.queue_no])).get(mail.queue_no) in (
        None,
        Counts(),
    )
    driver.send(mail, dedup_key="k")  # the key is free


def test_it_may_be_the_first_thing_that_a_transaction_does(
    driver: StoreDriver, transaction: CallerTransaction
) -> None:
    mail = driver.queue()

    sent = accepted(send(driver, transaction, mail))
    transaction.commit()

    assert driver.claim_ids(mail) == [sent]


def test_as_the_first_thing_it_can_be_rolled_back(
    driver: StoreDriver, transaction: CallerTransaction
) -> None:
    mail = driver.queue()

    accepted(send(driver, transaction, mail))
    transaction.rollback()

    assert driver.claim_ids(mail) == []


def test_a_refusal_leaves_the_transaction_as_it_was(
    driver: StoreDriver, transaction: CallerTransaction
) -> None:
    full = driver.queue(max_messages=1)
    driver.send(full)
    transaction.run(ADD.format("a"))

    assert isinstance(send(driver, transaction, full), QueueFull)
    assert isinstance(send(driver, transaction, a_queue(queue_no=999)), QueueNotFound)
    transaction.run(ADD.format("b"))
    transaction.commit()

    assert transaction.run(LOOK) == [("a",), ("b",)]
    transaction.rollback()
    check_counters(driver)


def test_an_error_of_ours_undoes_only_our_changes(
    driver: StoreDriver, transaction: CallerTransaction
) -> None:
    mail = driver.queue()
    transaction.run(ADD.format("a"))

    def fail(session) -> None:
        session.queues.change(mail.queue_no, is_paused=True, now=driver.now)
        raise QueueNotFound("nowhere")

    with pytest.raises(QueueNotFound):
        transaction.write(driver.store, fail)
    accepted(send(driver, transaction, mail))
    transaction.commit()

    assert transaction.run(LOOK) == [("a",)]
    transaction.rollback()
    assert len(driver.claim_ids(mail)) == 1  # not paused


@each_driver
def test_a_dedup_key_is_taken_only_by_a_commit(
    driver: StoreDriver, transaction: CallerTransaction
) -> None:
    mail = driver.queue()

    first = accepted(send(driver, transaction, mail, dedup_key="k"))
    again = send(driver, transaction, mail, dedup_key="k")
    transaction.commit()

    assert isinstance(again, Sent)
    assert (again.id, again.is_duplicate) == (first, True)
    [answer] = driver.submit_send(mail, dedup_key="k").result(30)
    assert isinstance(answer, Sent)
    assert (answer.id, answer.is_duplicate) == (first, True)
    check_counters(driver)


@each_driver
def test_a_group_keeps_its_order_over_both_ways_of_sending(
    driver: StoreDriver, transaction: CallerTransaction
) -> None:
    ordered = driver.queue(ordering=Ordering.GROUP)
    ids = [driver.send(ordered, group="g")]
    ids.append(accepted(send(driver, transaction, ordered, group="g")))
    ids.append(accepted(send(driver, transaction, ordered, group="g")))
    transaction.commit()
    ids.append(driver.send(ordered, group="g"))

    claimed = []
    while messages := driver.claim(ordered, limit=10):
        [message] = messages
        claimed.append(message.id)
        driver.complete(message)

    assert claimed == ids


@each_driver
def test_many_go_at_once(driver: StoreDriver, transaction: CallerTransaction) -> None:
    mail = driver.queue()
    new = [a_new_message(mail, now=driver.now, body="%s $1 :x 'é'", attributes={"n": "1"})
           for _ in range(150)]  # fmt: skip

    answers = transaction.send(driver.store, new)
    transaction.commit()

    assert [a.id for a in answers if isinstance(a, Sent)] == [n.message.id for n in new]
    claimed = driver.submit_claim(mail, 200).result(30).messages
    assert {content.body for _, content in claimed} == {"%s $1 :x 'é'"}
    assert len(claimed) == 150
    check_counters(driver)


@each_driver
def test_the_tables_of_a_new_day_are_there(
    driver: StoreDriver, transaction: CallerTransaction
) -> None:
    mail = driver.queue()
    driver.clock.advance(ms=40 * DAY)
    transaction.run(ADD.format("a"))

    accepted(send(driver, transaction, mail))
    transaction.rollback()
    sent = accepted(send(driver, transaction, mail))
    transaction.commit()

    assert driver.claim_ids(mail) == [sent]


@each_driver
def test_two_callers_do_not_wait_for_each_others_counters(
    driver: StoreDriver, open_transaction: OpenTransaction, backend: str
) -> None:
    if backend == "sqlite":
        return  # SQLite has one writer
    mail = driver.queue()
    one, other = open_transaction(), open_transaction()

    accepted(send(driver, one, mail))
    accepted(send(driver, other, mail))
    driver.send(mail)
    other.commit()
    one.commit()

    assert len(driver.claim_ids(mail)) == 3
    check_counters(driver)


@each_driver
def test_a_write_may_make_a_queue(driver: StoreDriver, transaction: CallerTransaction) -> None:
    settings = a_queue().settings
    transaction.write(driver.store, lambda s: s.queues.add("new", settings, now=driver.now))
    assert driver.read(lambda s: s.queues.find("new")) is None
    transaction.commit()

    assert driver.read(lambda s: s.queues.find("new")) is not None


@each_driver
def test_a_send_in_a_transaction_respects_the_limits_of_its_queue(
    driver: StoreDriver, transaction: CallerTransaction
) -> None:
    mail = driver.queue(max_leased_per_group=1, is_fair=True)

    first, second = (accepted(send(driver, transaction, mail, group="g")) for _ in range(2))
    other = accepted(send(driver, transaction, mail, group="h"))
    transaction.commit()

    assert sorted(driver.claim_ids(mail)) == sorted([first, other])
    assert driver.get(second).lease_no == 0
    check_counters(driver)
