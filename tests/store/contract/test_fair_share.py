"""Fair share: groups take turns by their weights, and a free slot is never left idle."""

import pytest

from penstock.domain.limits import MINUTE
from penstock.domain.message import lifecycle
from penstock.domain.message.lease import Verb
from penstock.domain.queue.queue import Ordering, Redelivery
from tests.factories import BACKOFF_MS


@pytest.fixture
def mail(desk):
    return desk.queue("mail", is_fair=True, weights={"big": 3}, lease_ms=MINUTE)


def groups(messages):
    return " ".join(m.group or "-" for m in messages)


def test_a_group_with_little_does_not_wait_for_one_with_much(desk, mail):
    desk.send_many(mail, 100, group="a")
    desk.send_many(mail, 2, group="b")
    desk.send_many(mail, 2)

    assert groups(desk.claim(mail, 8)) == "a b - a b - a a"


def test_a_weight_gives_a_greater_share(desk, mail):
    desk.send_many(mail, 50, group="small")
    desk.send_many(mail, 50, group="big")

    claimed = groups(desk.claim(mail, 40)).split()

    assert abs(claimed.count("big") - 30) <= 1


def test_alone_a_group_has_everything(desk, mail):
    ids = desk.send_many(mail, 10, group="a")

    assert desk.claim_ids(mail) == ids


def test_a_group_that_was_away_has_saved_nothing_up(desk, mail):
    desk.send_many(mail, 50, group="a")
    desk.claim(mail, 30)
    desk.send_many(mail, 20, group="b")

    assert groups(desk.claim(mail, 6)) == "b a b a b a"


def test_a_group_that_sends_one_after_the_other_gets_no_more_than_its_share(desk, mail):
    desk.send_many(mail, 50, group="a")
    desk.send(mail, group="b")
    claimed = []
    for _ in range(20):
        [held] = desk.claim(mail)
        claimed.append(held.group)
        desk.complete(held)
        if held.group == "b":
            desk.send(mail, group="b")

    assert abs(claimed.count("a") - 10) <= 1


def test_what_is_delayed_gets_its_turn_when_it_falls_due(desk, mail):
    desk.send_many(mail, 10, group="a", delay_ms=100)
    desk.send_many(mail, 10, group="a")
    desk.send(mail, group="b")
    assert groups(desk.claim(mail, 10)) == "a b a a a a a a a a"

    desk.clock.advance(ms=100)
    desk.send(mail, group="c")

    assert groups(desk.claim(mail, 3)) == "c a a"


def test_one_that_is_brought_forward_joins_the_line_then(desk, mail):
    early = desk.send(mail, group="a", delay_ms=100)
    desk.send_many(mail, 2, group="a")
    desk.send(mail, group="b")

    desk.alter(early, lambda m, _: lifecycle.reschedule(m, due_at=desk.now, now=desk.now))

    assert desk.claim_ids(mail)[-1] == early


def test_one_that_comes_back_keeps_its_turn(desk, mail):
    first, *_ = desk.send_many(mail, 5, group="a")
    [held] = desk.claim(mail)
    desk.act(Verb.FAIL, held)
    desk.send_many(mail, 5, group="b")
    desk.claim(mail, 3)
    desk.clock.advance(ms=BACKOFF_MS)

    assert desk.claim_ids(mail)[0] == first


def test_unless_the_queue_redelivers_at_the_back(desk):
    mail = desk.queue("back", is_fair=True, redelivery=Redelivery.BACK)
    first, *others = desk.send_many(mail, 3, group="a")
    [held] = desk.claim(mail)
    desk.act(Verb.RELEASE, held)
    other = desk.send(mail, group="b")

    assert desk.claim_ids(mail) == [other, *others, first]


def test_urgent_messages_have_a_line_of_their_own(desk, mail):
    desk.send_many(mail, 50, group="a")
    desk.send_many(mail, 2, group="a", priority=-1)
    desk.send_many(mail, 2, group="b", priority=-1)

    assert groups(desk.claim(mail, 5)) == "a b a b a"


def test_in_an_ordered_queue_groups_take_turns_with_their_first_messages(desk):
    orders = desk.queue("orders", is_fair=True, ordering=Ordering.GROUP)
    desk.send_many(orders, 10, group="a")
    for _ in range(5):
        [held] = desk.claim(orders)
        desk.complete(held)
    desk.send_many(orders, 3, group="b")

    claimed = []
    for _ in range(6):
        [held] = desk.claim(orders)
        claimed.append(held)
        desk.complete(held)

    assert groups(claimed) == "b a b a b a"


def test_when_the_line_is_empty_everybody_is_even(desk, mail):
    for m in (desk.get(i) for i in desk.send_many(mail, 50, group="a")):
        desk.alter(m.id, lambda m, _: lifecycle.cancel(m))
    assert desk.claim(mail) == []

    desk.send_many(mail, 2, group="b")
    desk.send_many(mail, 2, group="a")

    assert groups(desk.claim(mail, 9)) == "b a b a"


def test_moved_messages_join_the_line_they_come_into(desk, mail):
    letters = desk.queue("letters", is_fair=True)
    dying = desk.queue("dying", max_attempts=1, dead_letter_queue="letters")
    desk.send_many(letters, 3, group="a")
    desk.send(dying, group="b")
    [held] = desk.claim(dying)
    desk.act(Verb.FAIL, held)

    assert groups(desk.claim(letters, 9)) == "a b a a"


def test_groups_that_the_line_has_passed_are_forgotten(desk, mail):
    desk.send(mail, group="a")
    desk.send_many(mail, 5, group="b")
    desk.claim(mail, 4)

    assert desk.write(lambda s: s.tidying.forget_shares(limit=10)) == 1
    assert desk.write(lambda s: s.tidying.forget_shares(limit=10)) == 0
