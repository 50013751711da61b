"""Consecutive claims: as many of a group as are ready; no other claim gets any meanwhile."""

import pytest

from penstock.domain.limits import MINUTE, SECOND
from penstock.domain.message import lifecycle
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import Ordering
from tests.store.driver import WAIT_S


@pytest.fixture
def mail(driver):
    return driver.queue("mail", ordering=Ordering.GROUP, lease_ms=MINUTE)


def take(driver, queue, limit=10, **wanted):
    return driver.claim(queue, limit, in_a_row=True, **wanted)


def take_ids(driver, queue, limit=10):
    return [message.id for message in take(driver, queue, limit)]


def send(driver, queue, groups, **draft):
    return [driver.send(queue, group=group, **draft) for group in groups]


def extend(driver, message, ms=10 * MINUTE):
    driver.act(Verb.EXTEND, message, delay_ms=ms)


def test_a_claim_takes_one_group_as_far_as_it_can_and_then_the_next(driver, mail):
    a1, b1, a2, a3 = send(driver, mail, "abaa")

    assert take_ids(driver, mail) == [a1, a2, a3, b1]


def test_a_run_changes_the_rows_exactly_as_the_lifecycle_says(driver, mail):
    before = [driver.get(message_id) for message_id in send(driver, mail, "aab")]

    claimed = take(driver, mail, lease_ms=5, claimed_by="worker-1")

    how = {"now": driver.now, "lease_ms": 5, "claimed_by": "worker-1", "in_a_row": True}
    assert claimed == [lifecycle.claim(message, **how) for message in before]
    assert [driver.get(message.id) for message in claimed] == claimed
    assert [message.is_blocked for message in claimed] == [False, True, False]


def test_no_more_than_the_limit_is_taken(driver, mail):
    ids = send(driver, mail, "aaab")

    assert take_ids(driver, mail, 2) == ids[:2]
    assert take_ids(driver, mail, 2) == [ids[3]]
    assert take_ids(driver, mail, 2) == []


def test_the_limit_may_fall_into_the_middle_of_the_second_group(driver, mail):
    a1, b1, a2, b2, b3 = send(driver, mail, "ababb")

    assert take_ids(driver, mail, 4) == [a1, a2, b1, b2]
    assert driver.get(b3).state is State.READY


def test_the_most_urgent_head_goes_first_with_its_group_behind_it(driver, mail):
    slow, _ = driver.send(mail, group="a", priority=5), driver.send(mail, group="b")
    urgent = driver.send(mail, group="c", priority=-5)
    behind = driver.send(mail, group="c", priority=9)
    urgent_but_behind = driver.send(mail, group="a", priority=-9)

    ids = take_ids(driver, mail)

    assert ids[:2] == [urgent, behind]
    assert ids[3:] == [slow, urgent_but_behind]


def test_messages_without_a_group_are_claimed_in_their_places(driver, mail):
    a1, none, a2, other = send(driver, mail, ["a", None, "a", None])

    assert take_ids(driver, mail) == [a1, a2, none, other]


def test_while_a_message_of_a_run_is_leased_no_more_of_its_group_is_claimed(driver, mail):
    ids = send(driver, mail, "aaaa")
    first, second = take(driver, mail, 2)

    driver.complete(first)
    assert take_ids(driver, mail) == []
    assert driver.claim_ids(mail) == []

    driver.complete(second)
    assert take_ids(driver, mail) == ids[2:]


def test_a_run_may_be_completed_in_any_order(driver, mail):
    ids = send(driver, mail, "aaa")
    first, second = take(driver, mail, 2)

    driver.complete(second)
    assert take_ids(driver, mail) == []

    driver.complete(first)
    assert take_ids(driver, mail) == ids[2:]


def test_a_run_may_be_completed_in_one_batch(driver, mail):
    ids = send(driver, mail, "aaab")
    held = take(driver, mail, 2)

    with driver.together():
        for message in reversed(held):
            driver.submit_act(Verb.COMPLETE, message)
        claim = driver.submit_claim(mail, 10, in_a_row=True)

    assert [m.id for m, _ in claim.result(WAIT_S).messages] == [ids[2], ids[3]]


def test_an_expired_run_is_claimed_again_in_order(driver, mail):
    ids = send(driver, mail, "aaa")
    take(driver, mail)
    driver.clock.advance(minutes=1)

    again = take(driver, mail)

    assert [message.id for message in again] == ids
    assert [message.attempts for message in again] == [2, 2, 2]


def test_a_claim_of_an_expired_run_takes_only_messages_before_the_first_leased_one(driver, mail):
    ids = send(driver, mail, "aaaa")
    _, _, third, _ = take(driver, mail)
    extend(driver, third)
    driver.clock.advance(minutes=1)

    assert take_ids(driver, mail) == ids[:2]
    assert take_ids(driver, mail) == []


def test_a_leased_first_message_blocks_all_others(driver, mail):
    ids = send(driver, mail, "aaa")
    first, *_ = take(driver, mail)
    extend(driver, first)
    driver.clock.advance(minutes=1)

    assert take_ids(driver, mail) == []
    assert driver.claim_ids(mail) == []

    driver.complete(first)
    assert take_ids(driver, mail) == ids[1:]


def test_an_expired_message_in_the_middle_is_claimed_when_those_before_it_are_done(driver, mail):
    ids = send(driver, mail, "aaa")
    first, _, third = take(driver, mail)
    extend(driver, third)
    driver.complete(first)
    driver.clock.advance(minutes=1)

    assert take_ids(driver, mail) == [ids[1]]


@pytest.mark.parametrize(
    ("verb", "fields"), [(Verb.RELEASE, {}), (Verb.SNOOZE, {}), (Verb.FAIL, {"delay_ms": 0})]
)
def test_a_released_message_waits_for_those_before_it(driver, mail, verb, fields):
    ids = send(driver, mail, "aa")
    first, second = take(driver, mail)

    driver.act(verb, second, **fields)
    assert take_ids(driver, mail) == []

    driver.complete(first)
    assert take_ids(driver, mail) == ids[1:]


def test_a_message_that_dies_does_not_affect_the_others_of_its_run(driver, mail):
    ids = send(driver, mail, "aaaa")
    first, second, third = take(driver, mail, 3)

    driver.act(Verb.BURY, second)
    driver.complete(first)
    assert take_ids(driver, mail) == []

    driver.complete(third)
    assert take_ids(driver, mail) == [ids[3]]


def test_a_run_stops_at_a_message_that_is_not_due(driver, mail):
    first, waits, behind = (driver.send(mail, group="a", delay_ms=ms) for ms in (0, 5, 0))

    [held] = take(driver, mail)
    assert held.id == first
    driver.complete(held)
    assert take_ids(driver, mail) == []

    driver.clock.advance(ms=5)
    assert take_ids(driver, mail) == [waits, behind]


def test_an_expired_message_is_skipped_because_it_has_ended(driver, mail):
    first, late = driver.send(mail, group="a"), driver.send(mail, group="a", expires_in_ms=5)
    behind = driver.send(mail, group="a")
    driver.clock.advance(ms=5)

    assert take_ids(driver, mail) == [first, behind]
    assert driver.find(late) is None


def test_two_claims_of_one_batch_do_not_share_a_run(driver, mail):
    ids = send(driver, mail, "aaabb")

    with driver.together():
        tickets = [driver.submit_claim(mail, 2, in_a_row=True) for _ in range(3)]

    taken = [[m.id for m, _ in ticket.result(WAIT_S).messages] for ticket in tickets]
    assert taken == [ids[:2], ids[3:], []]


def test_ordinary_claims_of_the_same_batch_are_served_first(driver, mail):
    ids = send(driver, mail, "aabb")

    with driver.together():
        in_a_row = driver.submit_claim(mail, 10, in_a_row=True)
        plain = driver.submit_claim(mail, 1)

    assert [m.id for m, _ in plain.result(WAIT_S).messages] == [ids[0]]
    assert [m.id for m, _ in in_a_row.result(WAIT_S).messages] == ids[2:]


def test_in_a_standard_queue_in_a_row_makes_no_difference(driver):
    mail = driver.queue("standard")
    ids = send(driver, mail, "abab")

    assert take_ids(driver, mail, 3) == ids[:3]
    assert take_ids(driver, mail, 3) == ids[3:]


def test_a_lease_of_length_0_returns_each_message_once(driver, mail):
    ids = send(driver, mail, "aab")

    for n in (1, 2):
        claimed = take(driver, mail, lease_ms=0)
        assert [message.id for message in claimed] == ids
        assert {message.attempts for message in claimed} == {n}


def test_many_messages_that_fell_due_are_found(driver, mail):
    """More than one step brings back, most of them blocked behind a head that comes last."""
    head = driver.send(mail, group="a", delay_ms=SECOND)
    followers = driver.send_many(mail, 600, group="a", delay_ms=1)
    driver.clock.advance(ms=SECOND)

    claimed = take_ids(driver, mail, 1_000)

    assert claimed[0] == head
    assert claimed[1:] == followers[: len(claimed) - 1]


def test_a_run_is_as_long_as_it_is_wanted(driver, mail):
    sent = driver.send_many(mail, 300, group="a") + driver.send_many(mail, 300, group="b")

    assert take_ids(driver, mail, 450) == sent[:450]
    assert take_ids(driver, mail, 450) == []


def test_a_paused_queue_returns_no_run(driver, mail):
    send(driver, mail, "aa")
    driver.pause(mail)

    assert take_ids(driver, mail) == []
