"""A queue gets other limits while messages stand in line and others are held."""

import pytest

from penstock.domain.limits import MINUTE, SECOND
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.rate import Rate
from tests.store.recount import check_books


@pytest.fixture
def mail(desk):
    """Five of two groups and one of none in line; one of the first group is held."""
    queue = desk.queue("mail", lease_ms=MINUTE)
    for group in "ababab":
        desk.send(queue, group=group)
    desk.send(queue)
    desk.claim(queue, 1)
    return queue


def groups(messages):
    return "".join(m.group or "-" for m in messages)


def test_a_limit_for_groups_counts_what_is_held_already(desk, mail):
    desk.tune(mail, max_leased_per_group=1)

    assert groups(desk.claim(mail, 9)) == "b-"
    check_books(desk)


def test_a_limit_that_is_raised_lets_others_come(desk, mail):
    desk.tune(mail, max_leased_per_group=1)
    desk.tune(mail, max_leased_per_group=2)

    assert groups(desk.claim(mail, 9)) == "bab-"


def test_a_limit_that_is_lowered_holds_back_what_nobody_has_claimed_yet(desk, mail):
    desk.tune(mail, max_leased_per_group=3)
    desk.tune(mail, max_leased_per_group=1)

    assert groups(desk.claim(mail, 9)) == "b-"


def test_a_limit_that_is_taken_away_holds_nobody_back(desk, mail):
    desk.tune(mail, max_leased_per_group=1)
    desk.tune(mail, max_leased_per_group=None)

    assert groups(desk.claim(mail, 9)) == "babab-"
    assert {m.gate for m in desk.browse(mail, State.LEASED)} == {0}


def test_a_rate_for_groups_counts_from_the_change_on(desk, mail):
    desk.tune(mail, rate_per_group=Rate(1, SECOND))

    assert groups(desk.claim(mail, 9)) == "ba-"
    desk.clock.advance(seconds=1)
    assert groups(desk.claim(mail, 9)) == "ba"


def test_whoever_waits_for_its_instant_need_not_when_the_rate_is_gone(desk, mail):
    desk.tune(mail, rate_per_group=Rate(1, 3_600 * SECOND))
    desk.claim(mail, 9)
    assert desk.counts(mail).waiting == 2

    desk.tune(mail, rate_per_group=None)

    assert desk.counts(mail).waiting == 0
    assert len(desk.claim(mail, 9)) == 3


def test_another_rate_gives_them_other_instants(desk, mail):
    desk.tune(mail, rate_per_group=Rate(1, 3_600 * SECOND))
    desk.claim(mail, 9)

    desk.tune(mail, rate_per_group=Rate(1, 10 * SECOND))
    desk.claim(mail, 9)

    assert {m.due_at - desk.now for m in desk.browse(mail, State.WAITING)} == {10_000}


def test_a_delayed_message_goes_through_the_gate_that_is_there_when_it_falls_due(desk):
    mail = desk.queue("late", lease_ms=MINUTE)
    desk.send_many(mail, 3, group="a", delay_ms=10)
    desk.tune(mail, max_leased_per_group=1)
    desk.clock.advance(ms=10)

    assert len(desk.claim(mail, 9)) == 1


def test_a_queue_that_becomes_fair_shares_its_backlog_too(desk):
    mail = desk.queue("mail", lease_ms=MINUTE)
    for group in "aaaaabb":
        desk.send(mail, group=group)
    desk.claim(mail, 1)

    desk.tune(mail, is_fair=True, weights={"a": 2})
    desk.send_many(mail, 2, group="c")

    assert groups(desk.claim(mail, 9)) == "bcaabcaa"


def test_one_that_was_held_then_comes_back_to_where_it_was(desk):
    mail = desk.queue("mail", lease_ms=MINUTE)
    ids = desk.send_many(mail, 3, group="a")
    desk.claim(mail, 1)
    desk.tune(mail, is_fair=True)

    desk.clock.advance(minutes=1)

    assert desk.claim_ids(mail) == ids


def test_a_queue_that_is_not_fair_any_more_goes_by_places_only(desk):
    mail = desk.queue("mail", is_fair=True)
    for group in "aaab":
        desk.send(mail, group=group)

    desk.tune(mail, is_fair=False)
    desk.send(mail, group="c")

    assert groups(desk.claim(mail, 9)) == "aaabc"
    assert {m.turn for m in desk.browse(mail, State.LEASED)} == {0}


def test_limits_of_a_removed_queue_are_forgotten(desk):
    mail = desk.queue("mail", is_fair=True, rate=Rate(1), rate_per_group=Rate(1))
    desk.send_many(mail, 2, group="a")
    desk.claim(mail, 1)
    desk.write(lambda s: s.messages.purge(mail.queue_no, limit=9, now=desk.now))
    desk.write(lambda s: s.queues.remove(mail.queue_no, now=desk.now))

    far = desk.now + 366 * 86_400_000
    assert desk.write(lambda s: s.tidying.forget_paces(now=far, limit=9)) == 0
    desk.queues.clear()
