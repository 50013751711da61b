"""An act in the caller's own transaction takes effect if that is committed."""

from __future__ import annotations

from penstock.domain.errors import LeaseLost
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import Ordering
from penstock.ports.store import Acted
from tests.factories import an_act
from tests.store.callers.transaction_kinds import ADD, LOOK, CallerTransaction, each_driver
from tests.store.counter_checks import check_counters
from tests.store.driver import StoreDriver


def act(driver: StoreDriver, transaction: CallerTransaction, verb: Verb, message, **fields):
    [answer] = transaction.act(driver.store, [an_act(verb, message, now=driver.now, **fields)])
    return answer


def test_a_completion_counts_after_the_commit(
    driver: StoreDriver, transaction: CallerTransaction
) -> None:
    mail = driver.queue()
    sent = driver.send(mail)
    [message] = driver.claim(mail)
    transaction.run(ADD.format("done"))

    assert isinstance(act(driver, transaction, Verb.COMPLETE, message), Acted)
    assert driver.get(sent).state is State.LEASED
    transaction.commit()

    assert driver.find(sent) is None
    assert [ending.outcome for ending in driver.endings()] == [State.DONE]
    assert transaction.run(LOOK) == [("done",)]
    transaction.rollback()
    check_counters(driver)


def test_after_a_rollback_the_lease_is_held_as_before(
    driver: StoreDriver, transaction: CallerTransaction
) -> None:
    mail = driver.queue()
    sent = driver.send(mail)
    [message] = driver.claim(mail)
    transaction.run(ADD.format("done"))

    act(driver, transaction, Verb.COMPLETE, message)
    transaction.rollback()

    assert driver.get(sent).state is State.LEASED
    assert driver.endings() == []
    check_counters(driver)
    driver.complete(message)


def test_an_act_on_a_lost_lease_is_refused_and_the_rest_of_the_transaction_stays(
    driver: StoreDriver, transaction: CallerTransaction
) -> None:
    mail = driver.queue()
    driver.send(mail)
    [message] = driver.claim(mail)
    driver.act(Verb.RELEASE, message)
    transaction.run(ADD.format("a"))

    assert isinstance(act(driver, transaction, Verb.COMPLETE, message), LeaseLost)
    transaction.run(ADD.format("b"))
    transaction.commit()

    assert transaction.run(LOOK) == [("a",), ("b",)]
    transaction.rollback()
    check_counters(driver)


@each_driver
def test_a_failure_is_an_attempt_only_if_it_is_committed(
    driver: StoreDriver, transaction: CallerTransaction
) -> None:
    mail = driver.queue()
    sent = driver.send(mail)
    [message] = driver.claim(mail)

    act(driver, transaction, Verb.FAIL, message, text="oops")
    transaction.rollback()
    assert driver.attempts(sent) == []
    act(driver, transaction, Verb.FAIL, message, text="oops")
    transaction.commit()

    assert [attempt.error for attempt in driver.attempts(sent)] == ["oops"]
    driver.sent_ids = [sent]
    check_counters(driver)


@each_driver
def test_the_next_message_of_a_group_is_claimable_after_the_commit(
    driver: StoreDriver, transaction: CallerTransaction
) -> None:
    ordered = driver.queue(ordering=Ordering.GROUP)
    first, second = driver.send(ordered, group="g"), driver.send(ordered, group="g")
    [message] = driver.claim(ordered, limit=10)
    assert message.id == first

    act(driver, transaction, Verb.COMPLETE, message)
    transaction.commit()

    assert driver.claim_ids(ordered) == [second]
    check_counters(driver)


@each_driver
def test_a_completion_admits_the_next_message_of_a_limited_group(
    driver: StoreDriver, transaction: CallerTransaction
) -> None:
    mail = driver.queue(max_leased=1, max_leased_per_group=1)
    driver.send_many(mail, 2, group="g")
    [message] = driver.claim(mail, 2)

    assert isinstance(act(driver, transaction, Verb.COMPLETE, message), Acted)
    transaction.commit()

    assert len(driver.claim(mail, 2)) == 1
    check_counters(driver)
