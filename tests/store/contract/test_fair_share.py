"""Fair share: groups share a queue by their weights, and no slot stays idle."""

import pytest

from penstock.domain.limits import MINUTE
from penstock.domain.message import lifecycle
from penstock.domain.message.lease import Verb
from penstock.domain.queue.queue import Ordering, Redelivery
from tests.factories import BACKOFF_MS


@pytest.fixture
def mail(driver):
    return driver.queue("mail", is_fair=True, weights={"big": 3}, lease_ms=MINUTE)


def groups(messages):
    return " ".join(m.group or "-" for m in messages)


def test_a_group_with_few_messages_does_not_wait_for_one_with_many(driver, mail):
    driver.send_many(mail, 100, group="a")
    driver.send_many(mail, 2, group="b")
    driver.send_many(mail, 2)

    assert groups(driver.claim(mail, 8)) == "a b - a b - a a"


def test_a_weight_gives_a_greater_share(driver, mail):
    driver.send_many(mail, 50, group="small")
    driver.send_many(mail, 50, group="big")

    claimed = groups(driver.claim(mail, 40)).split()

    assert abs(claimed.count("big") - 30) <= 1


def test_alone_a_group_has_everything(driver, mail):
    ids = driver.send_many(mail, 10, group="a")

    assert driver.claim_ids(mail) == ids


def test_an_idle_group_earns_no_credit(driver, mail):
    driver.send_many(mail, 50, group="a")
    driver.claim(mail, 30)
    driver.send_many(mail, 20, group="b")

    assert groups(driver.claim(mail, 6)) == "b a b a b a"


def test_a_group_that_sends_one_after_the_other_gets_no_more_than_its_share(driver, mail):
    driver.send_many(mail, 50, group="a")
    driver.send(mail, group="b")
    claimed = []
    for _ in range(20):
        [held] = driver.claim(mail)
        claimed.append(held.group)
        driver.complete(held)
        if held.group == "b":
            driver.send(mail, group="b")

    assert abs(claimed.count("a") - 10) <= 1


def test_a_delayed_message_gets_its_position_when_it_falls_due(driver, mail):
    driver.send_many(mail, 10, group="a", delay_ms=100)
    driver.send_many(mail, 10, group="a")
    driver.send(mail, group="b")
    assert groups(driver.claim(mail, 10)) == "a b a a a a a a a a"

    driver.clock.advance(ms=100)
    driver.send(mail, group="c")

    assert groups(driver.claim(mail, 3)) == "c a a"


def test_a_message_that_is_brought_forward_gets_its_position_then(driver, mail):
    early = driver.send(mail, group="a", delay_ms=100)
    driver.send_many(mail, 2, group="a")
    driver.send(mail, group="b")

    driver.alter(early, lambda m, _: lifecycle.reschedule(m, due_at=driver.now, now=driver.now))

    assert driver.claim_ids(mail)[-1] == early


def test_a_redelivered_message_keeps_its_position(driver, mail):
    first, *_ = driver.send_many(mail, 5, group="a")
    [held] = driver.claim(mail)
    driver.act(Verb.FAIL, held)
    driver.send_many(mail, 5, group="b")
    driver.claim(mail, 3)
    driver.clock.advance(ms=BACKOFF_MS)

    assert driver.claim_ids(mail)[0] == first


def test_a_redelivered_message_gets_a_new_position_if_the_queue_redelivers_at_the_back(driver):
    mail = driver.queue("back", is_fair=True, redelivery=Redelivery.BACK)
    first, *others = driver.send_many(mail, 3, group="a")
    [held] = driver.claim(mail)
    driver.act(Verb.RELEASE, held)
    other = driver.send(mail, group="b")

    assert driver.claim_ids(mail) == [other, *others, first]


def test_each_priority_is_shared_separately(driver, mail):
    driver.send_many(mail, 50, group="a")
    driver.send_many(mail, 2, group="a", priority=-1)
    driver.send_many(mail, 2, group="b", priority=-1)

    assert groups(driver.claim(mail, 5)) == "a b a b a"


def test_an_ordered_queue_is_shared_by_the_first_messages_of_its_groups(driver):
    orders = driver.queue("orders", is_fair=True, ordering=Ordering.GROUP)
    driver.send_many(orders, 10, group="a")
    for _ in range(5):
        [held] = driver.claim(orders)
        driver.complete(held)
    driver.send_many(orders, 3, group="b")

    claimed = []
    for _ in range(6):
        [held] = driver.claim(orders)
        claimed.append(held)
        driver.complete(held)

    assert groups(claimed) == "b a b a b a"


def test_when_the_queue_is_empty_all_groups_start_level(driver, mail):
    for m in (driver.get(i) for i in driver.send_many(mail, 50, group="a")):
        driver.alter(m.id, lambda m, _: lifecycle.cancel(m))
    assert driver.claim(mail) == []

    driver.send_many(mail, 2, group="b")
    driver.send_many(mail, 2, group="a")

    assert groups(driver.claim(mail, 9)) == "b a b a"


def test_moved_messages_get_a_position_in_their_new_queue(driver, mail):
    letters = driver.queue("letters", is_fair=True)
    dying = driver.queue("dying", max_attempts=1, dead_letter_queue="letters")
    driver.send_many(letters, 3, group="a")
    driver.send(dying, group="b")
    [held] = driver.claim(dying)
    driver.act(Verb.FAIL, held)

    assert groups(driver.claim(letters, 9)) == "a b a a"


def test_groups_whose_position_was_passed_are_forgotten(driver, mail):
    driver.send(mail, group="a")
    driver.send_many(mail, 5, group="b")
    driver.claim(mail, 4)

    assert driver.write(lambda s: s.maintenance.forget_shares(limit=10)) == 1
    assert driver.write(lambda s: s.maintenance.forget_shares(limit=10)) == 0
