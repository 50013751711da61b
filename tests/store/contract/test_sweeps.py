"""The maintenance duties do what claims would do anyway."""

import pytest

from penstock.domain.limits import MINUTE
from penstock.domain.message.lifecycle import State


@pytest.fixture
def mail(driver):
    return driver.queue("mail", lease_ms=MINUTE)


def with_due(driver):
    return driver.read(lambda s: s.maintenance.queues_with_due(now=driver.now))


def with_expired(driver):
    return driver.read(lambda s: s.maintenance.queues_with_expired(now=driver.now))


def return_due(driver, queue, limit=100):
    return driver.write(
        lambda s: s.maintenance.return_due(queue.queue_no, now=driver.now, limit=limit)
    )


def expire(driver, queue, limit=100):
    return driver.write(lambda s: s.maintenance.expire(queue.queue_no, now=driver.now, limit=limit))


def test_a_queue_with_a_delayed_message_has_something_due_at_its_instant(driver, mail):
    driver.queue("other")
    driver.send(mail, delay_ms=5)

    driver.clock.advance(ms=4)
    assert with_due(driver) == []

    driver.clock.advance(ms=1)
    assert with_due(driver) == [mail.queue_no]


def test_a_queue_with_an_expired_lease_has_something_due(driver, mail):
    driver.send(mail)
    driver.claim(mail)
    assert with_due(driver) == []

    driver.clock.advance(minutes=1)

    assert with_due(driver) == [mail.queue_no]


def test_messages_that_are_brought_back_are_ready(driver, mail):
    delayed = driver.send(mail, delay_ms=5)
    lost = driver.send(mail)
    driver.claim(mail)
    driver.clock.advance(minutes=1)

    assert return_due(driver, mail) == 2

    assert {driver.get(delayed).state, driver.get(lost).state} == {State.READY}
    assert with_due(driver) == []
    assert return_due(driver, mail) == 0


def test_no_more_is_brought_back_than_asked_for_and_the_first_due_first(driver, mail):
    late, soon = driver.send(mail, delay_ms=2), driver.send(mail, delay_ms=1)
    driver.clock.advance(ms=2)

    assert return_due(driver, mail, limit=1) == 1

    assert driver.get(soon).state is State.READY
    assert driver.get(late).state is State.WAITING


def test_due_messages_of_a_paused_queue_are_brought_back_too(driver, mail):
    driver.send(mail, delay_ms=5)
    driver.pause(mail)
    driver.clock.advance(ms=5)

    assert with_due(driver) == [mail.queue_no]
    assert return_due(driver, mail) == 1


def test_a_queue_with_an_expired_message_has_something_to_expire(driver, mail):
    driver.queue("other")
    driver.send(mail, expires_in_ms=5)
    driver.send(mail)

    driver.clock.advance(ms=4)
    assert with_expired(driver) == []

    driver.clock.advance(ms=1)
    assert with_expired(driver) == [mail.queue_no]
    assert expire(driver, mail) == 1
    assert with_expired(driver) == []
    assert driver.counts(mail).ready == 1


def test_no_more_expire_than_asked_for_and_the_oldest_first(driver, mail):
    young, old = driver.send(mail, expires_in_ms=2), driver.send(mail, expires_in_ms=1)
    driver.clock.advance(ms=2)

    assert expire(driver, mail, limit=1) == 1

    assert driver.find(old) is None
    assert driver.find(young) is not None


def test_a_leased_message_does_not_expire(driver, mail):
    driver.send(mail, expires_in_ms=5)
    driver.claim(mail)
    driver.clock.advance(ms=5)

    assert with_expired(driver) == []
    assert expire(driver, mail) == 0


def test_a_removed_queue_has_nothing_to_tidy(driver, mail):
    driver.send(mail, delay_ms=5, expires_in_ms=9)
    driver.write(lambda s: s.queues.remove(mail.queue_no, now=driver.now))
    driver.clock.advance(seconds=1)

    assert with_due(driver) == []
    assert with_expired(driver) == []
