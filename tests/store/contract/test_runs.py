"""Claims in a row: of a group as many as are ready, and nobody else gets any of it meanwhile."""

import pytest

from penstock.domain.limits import MINUTE, SECOND
from penstock.domain.message import lifecycle
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import Ordering
from tests.store.desk import WAIT_S


@pytest.fixture
def mail(desk):
    return desk.queue("mail", ordering=Ordering.GROUP, lease_ms=MINUTE)


def take(desk, queue, limit=10, **wanted):
    return desk.claim(queue, limit, in_a_row=True, **wanted)


def take_ids(desk, queue, limit=10):
    return [message.id for message in take(desk, queue, limit)]


def send(desk, queue, groups, **draft):
    return [desk.send(queue, group=group, **draft) for group in groups]


def extend(desk, message, ms=10 * MINUTE):
    desk.act(Verb.EXTEND, message, delay_ms=ms)


def test_a_claim_takes_one_group_as_far_as_it_can_and_then_the_next(desk, mail):
    a1, b1, a2, a3 = send(desk, mail, "abaa")

    assert take_ids(desk, mail) == [a1, a2, a3, b1]


def test_a_run_changes_the_rows_exactly_as_the_lifecycle_says(desk, mail):
    before = [desk.get(message_id) for message_id in send(desk, mail, "aab")]

    claimed = take(desk, mail, lease_ms=5, claimed_by="worker-1")

    how = {"now": desk.now, "lease_ms": 5, "claimed_by": "worker-1", "in_a_row": True}
    assert claimed == [lifecycle.claim(message, **how) for message in before]
    assert [desk.get(message.id) for message in claimed] == claimed
    assert [message.is_blocked for message in claimed] == [False, True, False]


def test_no_more_than_the_limit_is_taken(desk, mail):
    ids = send(desk, mail, "aaab")

    assert take_ids(desk, mail, 2) == ids[:2]
    assert take_ids(desk, mail, 2) == [ids[3]]
    assert take_ids(desk, mail, 2) == []


def test_the_limit_may_fall_into_the_middle_of_the_second_group(desk, mail):
    a1, b1, a2, b2, b3 = send(desk, mail, "ababb")

    assert take_ids(desk, mail, 4) == [a1, a2, b1, b2]
    assert desk.get(b3).state is State.READY


def test_the_most_urgent_head_goes_first_with_its_group_behind_it(desk, mail):
    slow, _ = desk.send(mail, group="a", priority=5), desk.send(mail, group="b")
    urgent = desk.send(mail, group="c", priority=-5)
    behind = desk.send(mail, group="c", priority=9)
    overtakes_nobody = desk.send(mail, group="a", priority=-9)

    ids = take_ids(desk, mail)

    assert ids[:2] == [urgent, behind]
    assert ids[3:] == [slow, overtakes_nobody]


def test_messages_without_a_group_are_taken_in_their_places(desk, mail):
    a1, none, a2, other = send(desk, mail, ["a", None, "a", None])

    assert take_ids(desk, mail) == [a1, a2, none, other]


def test_while_one_of_a_run_is_held_nobody_gets_more_of_its_group(desk, mail):
    ids = send(desk, mail, "aaaa")
    first, second = take(desk, mail, 2)

    desk.complete(first)
    assert take_ids(desk, mail) == []
    assert desk.claim_ids(mail) == []

    desk.complete(second)
    assert take_ids(desk, mail) == ids[2:]


def test_a_run_may_be_completed_in_any_order(desk, mail):
    ids = send(desk, mail, "aaa")
    first, second = take(desk, mail, 2)

    desk.complete(second)
    assert take_ids(desk, mail) == []

    desk.complete(first)
    assert take_ids(desk, mail) == ids[2:]


def test_a_run_may_be_completed_in_one_batch(desk, mail):
    ids = send(desk, mail, "aaab")
    held = take(desk, mail, 2)

    with desk.together():
        for message in reversed(held):
            desk.submit_act(Verb.COMPLETE, message)
        claim = desk.submit_claim(mail, 10, in_a_row=True)

    assert [m.id for m, _ in claim.result(WAIT_S).messages] == [ids[2], ids[3]]


def test_when_a_run_comes_back_it_comes_back_whole_and_in_order(desk, mail):
    ids = send(desk, mail, "aaa")
    take(desk, mail)
    desk.clock.advance(minutes=1)

    again = take(desk, mail)

    assert [message.id for message in again] == ids
    assert [message.attempts for message in again] == [2, 2, 2]


def test_of_a_run_that_comes_back_only_those_before_the_first_that_is_held_are_given(desk, mail):
    ids = send(desk, mail, "aaaa")
    _, _, third, _ = take(desk, mail)
    extend(desk, third)
    desk.clock.advance(minutes=1)

    assert take_ids(desk, mail) == ids[:2]
    assert take_ids(desk, mail) == []


def test_the_first_that_is_held_keeps_all_others_waiting(desk, mail):
    ids = send(desk, mail, "aaa")
    first, *_ = take(desk, mail)
    extend(desk, first)
    desk.clock.advance(minutes=1)

    assert take_ids(desk, mail) == []
    assert desk.claim_ids(mail) == []

    desk.complete(first)
    assert take_ids(desk, mail) == ids[1:]


def test_a_lost_one_in_the_middle_comes_again_when_those_before_it_are_done(desk, mail):
    ids = send(desk, mail, "aaa")
    first, _, third = take(desk, mail)
    extend(desk, third)
    desk.complete(first)
    desk.clock.advance(minutes=1)

    assert take_ids(desk, mail) == [ids[1]]


@pytest.mark.parametrize(
    ("verb", "fields"), [(Verb.RELEASE, {}), (Verb.SNOOZE, {}), (Verb.FAIL, {"delay_ms": 0})]
)
def test_one_given_back_waits_for_those_before_it(desk, mail, verb, fields):
    ids = send(desk, mail, "aa")
    first, second = take(desk, mail)

    desk.act(verb, second, **fields)
    assert take_ids(desk, mail) == []

    desk.complete(first)
    assert take_ids(desk, mail) == ids[1:]


def test_one_that_dies_leaves_the_others_of_its_run_alone(desk, mail):
    ids = send(desk, mail, "aaaa")
    first, second, third = take(desk, mail, 3)

    desk.act(Verb.BURY, second)
    desk.complete(first)
    assert take_ids(desk, mail) == []

    desk.complete(third)
    assert take_ids(desk, mail) == [ids[3]]


def test_a_run_stops_at_one_that_is_not_due(desk, mail):
    first, waits, behind = (desk.send(mail, group="a", delay_ms=ms) for ms in (0, 5, 0))

    [held] = take(desk, mail)
    assert held.id == first
    desk.complete(held)
    assert take_ids(desk, mail) == []

    desk.clock.advance(ms=5)
    assert take_ids(desk, mail) == [waits, behind]


def test_an_expired_one_is_passed_over_because_it_has_ended(desk, mail):
    first, late = desk.send(mail, group="a"), desk.send(mail, group="a", expires_in_ms=5)
    behind = desk.send(mail, group="a")
    desk.clock.advance(ms=5)

    assert take_ids(desk, mail) == [first, behind]
    assert desk.find(late) is None


def test_two_claims_of_one_batch_do_not_share_a_run(desk, mail):
    ids = send(desk, mail, "aaabb")

    with desk.together():
        tickets = [desk.submit_claim(mail, 2, in_a_row=True) for _ in range(3)]

    taken = [[m.id for m, _ in ticket.result(WAIT_S).messages] for ticket in tickets]
    assert taken == [ids[:2], ids[3:], []]


def test_ordinary_claims_of_the_same_batch_are_served_first(desk, mail):
    ids = send(desk, mail, "aabb")

    with desk.together():
        in_a_row = desk.submit_claim(mail, 10, in_a_row=True)
        plain = desk.submit_claim(mail, 1)

    assert [m.id for m, _ in plain.result(WAIT_S).messages] == [ids[0]]
    assert [m.id for m, _ in in_a_row.result(WAIT_S).messages] == ids[2:]


def test_elsewhere_it_makes_no_difference(desk):
    mail = desk.queue("standard")
    ids = send(desk, mail, "abab")

    assert take_ids(desk, mail, 3) == ids[:3]
    assert take_ids(desk, mail, 3) == ids[3:]


def test_a_lease_of_no_length_gives_each_message_once(desk, mail):
    ids = send(desk, mail, "aab")

    for n in (1, 2):
        claimed = take(desk, mail, lease_ms=0)
        assert [message.id for message in claimed] == ids
        assert {message.attempts for message in claimed} == {n}


def test_what_fell_due_in_large_numbers_is_found(desk, mail):
    """More than one step brings back, most of it blocked behind a head that comes last."""
    head = desk.send(mail, group="a", delay_ms=SECOND)
    followers = desk.send_many(mail, 600, group="a", delay_ms=1)
    desk.clock.advance(ms=SECOND)

    claimed = take_ids(desk, mail, 1_000)

    assert claimed[0] == head
    assert claimed[1:] == followers[: len(claimed) - 1]


def test_a_run_is_as_long_as_it_is_wanted(desk, mail):
    sent = desk.send_many(mail, 300, group="a") + desk.send_many(mail, 300, group="b")

    assert take_ids(desk, mail, 450) == sent[:450]
    assert take_ids(desk, mail, 450) == []


def test_a_paused_queue_gives_no_run(desk, mail):
    send(desk, mail, "aa")
    desk.pause(mail)

    assert take_ids(desk, mail) == []
