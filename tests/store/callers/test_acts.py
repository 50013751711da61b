"""An act in the caller's own transaction takes effect if that is committed."""

from __future__ import annotations

from penstock.domain.errors import LeaseLost
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import Ordering
from penstock.ports.store import Acted
from tests.factories import an_act
from tests.store.callers.ways import ADD, LOOK, Way, each_driver
from tests.store.counter_checks import check_counters
from tests.store.driver import StoreDriver


def act(driver: StoreDriver, way: Way, verb: Verb, message, **fields):
    [answer] = way.act(driver.store, [an_act(verb, message, now=driver.now, **fields)])
    return answer


def test_a_completion_counts_after_the_commit(driver: StoreDriver, way: Way) -> None:
    mail = driver.queue()
    sent = driver.send(mail)
    [message] = driver.claim(mail)
    way.run(ADD.format("done"))

    assert isinstance(act(driver, way, Verb.COMPLETE, message), Acted)
    assert driver.get(sent).state is State.LEASED
    way.commit()

    assert driver.find(sent) is None
    assert [ending.outcome for ending in driver.endings()] == [State.DONE]
    assert way.run(LOOK) == [("done",)]
    way.rollback()
    check_counters(driver)


def test_after_a_rollback_the_lease_is_held_as_before(driver: StoreDriver, way: Way) -> None:
    mail = driver.queue()
    sent = driver.send(mail)
    [message] = driver.claim(mail)
    way.run(ADD.format("done"))

    act(driver, way, Verb.COMPLETE, message)
    way.rollback()

    assert driver.get(sent).state is State.LEASED
    assert driver.endings() == []
    check_counters(driver)
    driver.complete(message)


def test_an_act_on_a_lost_lease_is_refused_and_the_rest_of_the_transaction_stays(
    driver: StoreDriver, way: Way
) -> None:
    mail = driver.queue()
    driver.send(mail)
    [message] = driver.claim(mail)
    driver.act(Verb.RELEASE, message)
    way.run(ADD.format("a"))

    assert isinstance(act(driver, way, Verb.COMPLETE, message), LeaseLost)
    way.run(ADD.format("b"))
    way.commit()

    assert way.run(LOOK) == [("a",), ("b",)]
    way.rollback()
    check_counters(driver)


@each_driver
def test_a_failure_is_an_attempt_only_if_it_is_committed(driver: StoreDriver, way: Way) -> None:
    mail = driver.queue()
    sent = driver.send(mail)
    [message] = driver.claim(mail)

    act(driver, way, Verb.FAIL, message, text="oops")
    way.rollback()
    assert driver.attempts(sent) == []
    act(driver, way, Verb.FAIL, message, text="oops")
    way.commit()

    assert [attempt.error for attempt in driver.attempts(sent)] == ["oops"]
    driver.sent_ids = [sent]
    check_counters(driver)


@each_driver
def test_the_next_message_of_a_group_is_claimable_after_the_commit(
    driver: StoreDriver, way: Way
) -> None:
    ordered = driver.queue(ordering=Ordering.GROUP)
    first, second = driver.send(ordered, group="g"), driver.send(ordered, group="g")
    [message] = driver.claim(ordered, limit=10)
    assert message.id == first

    act(driver, way, Verb.COMPLETE, message)
    way.commit()

    assert driver.claim_ids(ordered) == [second]
    check_counters(driver)


@each_driver
def test_a_completion_admits_the_next_message_of_a_limited_group(
    driver: StoreDriver, way: Way
) -> None:
    mail = driver.queue(max_leased=1, max_leased_per_group=1)
    driver.send_many(mail, 2, group="g")
    [message] = driver.claim(mail, 2)

    assert isinstance(act(driver, way, Verb.COMPLETE, message), Acted)
    way.commit()

    assert len(driver.claim(mail, 2)) == 1
    check_counters(driver)
