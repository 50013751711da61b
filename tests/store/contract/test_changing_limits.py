"""A queue gets other limits while messages stand in line and others are held."""

import pytest

from penstock.domain.limits import MINUTE, SECOND
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.rate import Rate
from tests.store.recount import check_books


@pytest.fixture
def mail(driver):
    """Five of two groups and one of none in line; one of the first group is held."""
    queue = driver.queue("mail", lease_ms=MINUTE)
    for group in "ababab":
        driver.send(queue, group=group)
    driver.send(queue)
    driver.claim(queue, 1)
    return queue


def groups(messages):
    return "".join(m.group or "-" for m in messages)


def test_a_limit_for_groups_counts_what_is_held_already(driver, mail):
    driver.tune(mail, max_leased_per_group=1)

    assert groups(driver.claim(mail, 9)) == "b-"
    check_books(driver)


def test_a_limit_that_is_raised_lets_others_come(driver, mail):
    driver.tune(mail, max_leased_per_group=1)
    driver.tune(mail, max_leased_per_group=2)

    assert groups(driver.claim(mail, 9)) == "bab-"


def test_a_limit_that_is_lowered_holds_back_what_nobody_has_claimed_yet(driver, mail):
    driver.tune(mail, max_leased_per_group=3)
    driver.tune(mail, max_leased_per_group=1)

    assert groups(driver.claim(mail, 9)) == "b-"


def test_a_limit_that_is_taken_away_holds_nobody_back(driver, mail):
    driver.tune(mail, max_leased_per_group=1)
    driver.tune(mail, max_leased_per_group=None)

    assert groups(driver.claim(mail, 9)) == "babab-"
    assert {m.gate for m in driver.browse(mail, State.LEASED)} == {0}


def test_a_rate_for_groups_counts_from_the_change_on(driver, mail):
    driver.tune(mail, rate_per_group=Rate(1, SECOND))

    assert groups(driver.claim(mail, 9)) == "ba-"
    driver.clock.advance(seconds=1)
    assert groups(driver.claim(mail, 9)) == "ba"


def test_whoever_waits_for_its_instant_need_not_when_the_rate_is_gone(driver, mail):
    driver.tune(mail, rate_per_group=Rate(1, 3_600 * SECOND))
    driver.claim(mail, 9)
    assert driver.counts(mail).waiting == 2

    driver.tune(mail, rate_per_group=None)

    assert driver.counts(mail).waiting == 0
    assert len(driver.claim(mail, 9)) == 3


def test_another_rate_gives_them_other_instants(driver, mail):
    driver.tune(mail, rate_per_group=Rate(1, 3_600 * SECOND))
    driver.claim(mail, 9)

    driver.tune(mail, rate_per_group=Rate(1, 10 * SECOND))
    driver.claim(mail, 9)

    assert {m.due_at - driver.now for m in driver.browse(mail, State.WAITING)} == {10_000}


def test_a_delayed_message_goes_through_the_gate_that_is_there_when_it_falls_due(driver):
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


def test_one_that_was_held_then_comes_back_to_where_it_was(driver):
    mail = driver.queue("mail", lease_ms=MINUTE)
    ids = driver.send_many(mail, 3, group="a")
    driver.claim(mail, 1)
    driver.tune(mail, is_fair=True)

    driver.clock.advance(minutes=1)

    assert driver.claim_ids(mail) == ids


def test_a_queue_that_is_not_fair_any_more_goes_by_places_only(driver):
    mail = driver.queue("mail", is_fair=True)
    for group in "aaab":
        driver.send(mail, group=group)

    driver.tune(mail, is_fair=False)
    driver.send(mail, group="c")

    assert groups(driver.claim(mail, 9)) == "aaabc"
    assert {m.turn for m in driver.browse(mail, State.LEASED)} == {0}


def test_limits_of_a_removed_queue_are_forgotten(driver):
    mail = driver.queue("mail", is_fair=True, rate=Rate(1), rate_per_group=Rate(1))
    driver.send_many(mail, 2, group="a")
    driver.claim(mail, 1)
    driver.write(lambda s: s.messages.purge(mail.queue_no, limit=9, now=driver.now))
    driver.write(lambda s: s.queues.remove(mail.queue_no, now=driver.now))

    far = driver.now + 366 * 86_400_000
    assert driver.write(lambda s: s.tidying.forget_rates(now=far, limit=9)) == 0
    driver.queues.clear()
