"""Fair share: groups take turns by their weights, and a free slot is never left idle."""

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


def test_a_group_with_little_does_not_wait_for_one_with_much(driver, mail):
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


def test_a_group_that_was_away_has_saved_nothing_up(driver, mail):
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


def test_what_is_delayed_gets_its_turn_when_it_falls_due(driver, mail):
    driver.send_many(mail, 10, group="a", delay_ms=100)
    driver.send_many(mail, 10, group="a")
    driver.send(mail, group="b")
    assert groups(driver.claim(mail, 10)) == "a b a a a a a a a a"

    driver.clock.advance(ms=100)
    driver.send(mail, group="c")

    assert groups(driver.claim(mail, 3)) == "c a a"


def test_one_that_is_brought_forward_joins_the_line_then(driver, mail):
    early = driver.send(mail, group="a", delay_ms=100)
    driver.send_many(mail, 2, group="a")
    driver.send(mail, group="b")

    driver.alter(early, lambda m, _: lifecycle.reschedule(m, due_at=driver.now, now=driver.now))

    assert driver.claim_ids(mail)[-1] == early


def test_one_that_comes_back_keeps_its_turn(driver, mail):
    first, *_ = driver.send_many(mail, 5, group="a")
    [held] = driver.claim(mail)
    driver.act(Verb.FAIL, held)
    driver.send_many(mail, 5, group="b")
    driver.claim(mail, 3)
    driver.clock.advance(ms=BACKOFF_MS)

    assert driver.claim_ids(mail)[0] == first


def test_unless_the_queue_redelivers_at_the_back(driver):
    mail = driver.queue("back", is_fair=True, redelivery=Redelivery.BACK)
    first, *others = driver.send_many(mail, 3, group="a")
    [held] = driver.claim(mail)
    driver.act(Verb.RELEASE, held)
    other = driver.send(mail, group="b")

    assert driver.claim_ids(mail) == [other, *others, first]


def test_urgent_messages_have_a_line_of_their_own(driver, mail):
    driver.send_many(mail, 50, group="a")
    driver.send_many(mail, 2, group="a", priority=-1)
    driver.send_many(mail, 2, group="b", priority=-1)

    assert groups(driver.claim(mail, 5)) == "a b a b a"


def test_in_an_ordered_queue_groups_take_turns_with_their_first_messages(driver):
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


def test_when_the_line_is_empty_everybody_is_even(driver, mail):
    for m in (driver.get(i) for i in driver.send_many(mail, 50, group="a")):
        driver.alter(m.id, lambda m, _: lifecycle.cancel(m))
    assert driver.claim(mail) == []

    driver.send_many(mail, 2, group="b")
    driver.send_many(mail, 2, group="a")

    assert groups(driver.claim(mail, 9)) == "b a b a"


def test_moved_messages_join_the_line_they_come_into(driver, mail):
    letters = driver.queue("letters", is_fair=True)
    dying = driver.queue("dying", max_attempts=1, dead_letter_queue="letters")
    driver.send_many(letters, 3, group="a")
    driver.send(dying, group="b")
    [held] = driver.claim(dying)
    driver.act(Verb.FAIL, held)

    assert groups(driver.claim(letters, 9)) == "a b a a"


def test_groups_that_the_line_has_passed_are_forgotten(driver, mail):
    driver.send(mail, group="a")
    driver.send_many(mail, 5, group="b")
    driver.claim(mail, 4)

    assert driver.write(lambda s: s.tidying.forget_shares(limit=10)) == 1
    assert driver.write(lambda s: s.tidying.forget_shares(limit=10)) == 0
