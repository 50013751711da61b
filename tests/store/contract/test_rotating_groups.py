"""Queues ordered by group that redeliver at the back: a group that came back waits its turn."""

import pytest

from penstock.domain.limits import MINUTE
from penstock.domain.message import lifecycle, transfer
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import Ordering, Redelivery
from tests.store.counter_checks import check_counters


@pytest.fixture
def mail(driver):
    return driver.queue(
        "mail", ordering=Ordering.GROUP, redelivery=Redelivery.BACK, lease_ms=MINUTE
    )


def claimed_groups(driver, mail, limit=9):
    return "".join(m.group or "-" for m in driver.claim(mail, limit))


def test_a_group_whose_lease_expired_goes_behind_those_that_wait(driver, mail):
    for group in "abc":
        driver.send(mail, group=group)
    assert claimed_groups(driver, mail, 2) == "ab"

    driver.clock.advance(ms=MINUTE)

    assert claimed_groups(driver, mail) == "cab"


def test_a_group_that_was_released_goes_behind_those_that_wait(driver, mail):
    for group in "ab":
        driver.send(mail, group=group)
    [held] = driver.claim(mail, 1)

    driver.act(Verb.RELEASE, held)

    assert claimed_groups(driver, mail) == "ba"


def test_a_group_that_came_back_is_ahead_of_messages_sent_later(driver, mail):
    driver.send(mail, group="a")
    [held] = driver.claim(mail, 1)
    driver.act(Verb.RELEASE, held)

    driver.send(mail, group="b")

    assert claimed_groups(driver, mail) == "ab"


def test_a_message_that_came_back_is_still_the_first_of_its_group(driver, mail):
    first, second = (driver.send(mail, group="a") for _ in range(2))
    [held] = driver.claim(mail, 1)
    driver.act(Verb.RELEASE, held)

    [held] = driver.claim(mail, 9)
    assert held.id == first
    driver.complete(held)

    assert driver.claim_ids(mail) == [second]


def test_a_redriven_message_is_behind_the_groups_that_wait(driver, mail):
    dead = driver.send(mail, group="a")
    driver.alter(dead, lambda m, _: lifecycle.bury(m))
    driver.send(mail, group="b")

    driver.alter(dead, lambda m, queue: transfer.redrive(m, queue, now=driver.now))

    assert claimed_groups(driver, mail) == "ba"


def test_a_queue_that_redelivers_at_the_front_again_forgets_who_came_back(driver, mail):
    for group in "ab":
        driver.send(mail, group=group)
    [held] = driver.claim(mail, 1)
    driver.act(Verb.RELEASE, held)

    driver.tune(mail, redelivery=Redelivery.FRONT)
    driver.send(mail, group="c")

    assert claimed_groups(driver, mail) == "abc"


def test_a_dead_letter_of_a_queue_that_is_its_own_goes_to_the_back(driver):
    mail = driver.queue("mail", dead_letter_queue="mail", max_attempts=1)
    first, second = (driver.send(mail) for _ in range(2))

    [held] = driver.claim(mail, 1)
    assert driver.act(Verb.FAIL, held).state is State.DEAD

    assert driver.claim_ids(mail) == [second, first]
    check_counters(driver)
