"""Changing the limits of a queue that has messages and leases."""

import pytest

from penstock.domain.limits import MINUTE, SECOND
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.rate import Rate
from tests.store.counter_checks import check_counters


@pytest.fixture
def mail(driver):
    """Five ready messages of two groups, one without a group, and one leased of the first group."""
    queue = driver.queue("mail", lease_ms=MINUTE)
    for group in "ababab":
        driver.send(queue, group=group)
    driver.send(queue)
    driver.claim(queue, 1)
    return queue


def groups(messages):
    return "".join(m.group or "-" for m in messages)


def test_a_limit_for_groups_counts_existing_leases(driver, mail):
    driver.tune(mail, max_leased_per_group=1)

    assert groups(driver.claim(mail, 9)) == "b-"
    check_counters(driver)


def test_raising_a_limit_admits_more_messages(driver, mail):
    driver.tune(mail, max_leased_per_group=1)
    driver.tune(mail, max_leased_per_group=2)

    assert groups(driver.claim(mail, 9)) == "bab-"


def test_lowering_a_limit_holds_back_unclaimed_messages(driver, mail):
    driver.tune(mail, max_leased_per_group=3)
    driver.tune(mail, max_leased_per_group=1)

    assert groups(driver.claim(mail, 9)) == "b-"


def test_without_its_limit_a_queue_holds_no_message_back(driver, mail):
    driver.tune(mail, max_leased_per_group=1)
    driver.tune(mail, max_leased_per_group=None)

    assert groups(driver.claim(mail, 9)) == "babab-"
    assert {m.gate for m in driver.browse(mail, State.LEASED)} == {0}


def test_a_rate_for_groups_counts_from_the_change_on(driver, mail):
    driver.tune(mail, rate_per_group=Rate(1, SECOND))

    assert groups(driver.claim(mail, 9)) == "ba-"
    driver.clock.advance(seconds=1)
    assert groups(driver.claim(mail, 9)) == "ba"


def test_a_message_does_not_wait_for_its_instant_once_the_rate_is_removed(driver, mail):
    driver.tune(mail, rate_per_group=Rate(1, 3_600 * SECOND))
    driver.claim(mail, 9)
    assert driver.counts(mail).waiting == 2

    driver.tune(mail, rate_per_group=None)

    assert driver.counts(mail).waiting == 0
    assert len(driver.claim(mail, 9)) == 3


def test_another_rate_assigns_other_instants(driver, mail):
    driver.tune(mail, rate_per_group=Rate(1, 3_600 * SECOND))
    driver.claim(mail, 9)

    driver.tune(mail, rate_per_group=Rate(1, 10 * SECOND))
    driver.claim(mail, 9)

    assert {m.due_at - driver.now for m in driver.browse(mail, State.WAITING)} == {10_000}


def test_a_delayed_message_is_subject_to_the_limit_in_force_when_it_falls_due(driver):
    mail = driver.queue("late", lease_ms=MINUTE)
    driver.send_many(mail, 3, group="a", delay_ms=10)
    driver.tune(mail, max_leased_per_group=1)
    driver.clock.advance(ms=10)

    assert len(driver.claim(mail, 9)) == 1


def test_a_queue_that_becomes_fair_shares_its_backlog_too(driver):
    mail = driver.queue("mail", lease_ms=MINUTE)
    for group in "aaaaabb":
        driver.send(mail, group=group)
    driver.claim(mail, 1)

    driver.tune(mail, is_fair=True, weights={"a": 2})
    driver.send_many(mail, 2, group="c")

    assert groups(driver.claim(mail, 9)) == "bcaabcaa"


def test_a_message_that_was_leased_then_returns_to_its_place(driver):
    mail = driver.queue("mail", lease_ms=MINUTE)
    ids = driver.send_many(mail, 3, group="a")
    driver.claim(mail, 1)
    driver.tune(mail, is_fair=True)

    driver.clock.advance(minutes=1)

    assert driver.claim_ids(mail) == ids


def test_a_queue_that_stops_being_fair_uses_the_order_of_sending(driver):
    mail = driver.queue("mail", is_fair=True)
    for group in "aaab":
        driver.send(mail, group=group)

    driver.tune(mail, is_fair=False)
    driver.send(mail, group="c")

    assert groups(driver.claim(mail, 9)) == "aaabc"
    assert {m.fair_position for m in driver.browse(mail, State.LEASED)} == {0}


def test_limits_of_a_removed_queue_are_forgotten(driver):
    mail = driver.queue("mail", is_fair=True, rate=Rate(1), rate_per_group=Rate(1))
    driver.send_many(mail, 2, group="a")
    driver.claim(mail, 1)
    driver.write(lambda s: s.messages.purge(mail.queue_no, limit=9, now=driver.now))
    driver.write(lambda s: s.queues.remove(mail.queue_no, now=driver.now))

    far = driver.now + 366 * 86_400_000
    assert driver.write(lambda s: s.maintenance.forget_rates(now=far, limit=9)) == 0
    driver.queues.clear()
