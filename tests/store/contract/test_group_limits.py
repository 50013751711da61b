"""Limits per group: how many of a group are leased at the same time, and how many in a time."""

import pytest

from penstock.domain.limits import MINUTE, SECOND
from penstock.domain.message import lifecycle
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.rate import Rate
from penstock.outbound.dice import SystemDice
from penstock.services.moves import Moves
from tests.factories import BACKOFF_MS
from tests.store.recount import check_books


@pytest.fixture
def mail(desk):
    return desk.queue("mail", max_leased_per_group=2, lease_ms=MINUTE, max_attempts=9)


@pytest.fixture
def slow(desk):
    """One a second of each group, two at once."""
    return desk.queue("slow", rate_per_group=Rate(1, SECOND, 2), lease_ms=MINUTE)


def test_of_each_group_only_so_many_are_leased_at_the_same_time(desk, mail):
    a, b = desk.send_many(mail, 4, group="a"), desk.send_many(mail, 3, group="b")
    free = desk.send_many(mail, 3)

    assert desk.claim_ids(mail) == [*a[:2], *b[:2], *free]
    assert desk.claim_ids(mail) == []


def test_a_group_that_has_enough_keeps_nobody_else_waiting(desk, mail):
    desk.send_many(mail, 500, group="a")
    last = desk.send(mail, group="b")

    assert len(desk.claim(mail, 2)) == 2
    assert desk.claim_ids(mail) == [last]


@pytest.mark.parametrize("verb", [Verb.COMPLETE, Verb.CANCEL, Verb.BURY, Verb.TIME_OUT])
def test_when_one_has_ended_the_next_of_its_group_comes(desk, mail, verb):
    ids = desk.send_many(mail, 4, group="a")
    held = desk.claim(mail, 9)

    desk.act(verb, held[1])

    assert desk.claim_ids(mail) == [ids[2]]


def test_one_that_is_given_back_comes_before_those_behind_it(desk, mail):
    ids = desk.send_many(mail, 4, group="a")
    held = desk.claim(mail, 9)

    desk.act(Verb.RELEASE, held[1])

    assert desk.claim_ids(mail) == [ids[1]]


def test_one_that_backs_off_holds_no_place_of_its_group(desk, mail):
    ids = desk.send_many(mail, 4, group="a")
    held = desk.claim(mail, 9)

    desk.act(Verb.FAIL, held[0])
    assert desk.claim_ids(mail) == [ids[2]]

    desk.clock.advance(ms=BACKOFF_MS)
    assert desk.claim_ids(mail) == []  # two are leased, and it waits for one of them
    desk.complete(held[1])
    assert desk.claim_ids(mail) == [ids[0]]


def test_leases_that_run_out_make_room_in_their_group(desk, mail):
    ids = desk.send_many(mail, 4, group="a")
    desk.claim(mail, 9)
    desk.clock.advance(minutes=1)

    assert desk.claim_ids(mail) == ids[:2]


def test_one_let_through_that_is_cancelled_or_expires_makes_room(desk, mail):
    first = desk.send(mail, group="a", expires_in_ms=5)
    ids = [first, *desk.send_many(mail, 4, group="a")]

    desk.alter(ids[1], lambda m, _: lifecycle.cancel(m))
    assert [m.is_blocked for m in desk.browse(mail, State.READY)] == [False] * 2 + [True] * 2
    desk.clock.advance(ms=5)

    assert desk.claim_ids(mail) == ids[2:4]


def test_what_is_delayed_takes_no_room_before_it_is_due(desk, mail):
    desk.send_many(mail, 3, group="a", delay_ms=50)
    ids = desk.send_many(mail, 2, group="a")

    assert desk.claim_ids(mail) == ids


def test_urgent_ones_of_a_group_come_first_among_those_that_are_held_back(desk, mail):
    desk.send_many(mail, 4, group="a")
    urgent = desk.send(mail, group="a", priority=-5)
    held = desk.claim(mail, 9)

    desk.complete(held[0])

    assert desk.claim_ids(mail) == [urgent]


def test_a_move_takes_all_whether_held_back_or_not(desk, mail):
    desk.queue("other", max_leased_per_group=1)
    desk.send_many(mail, 5, group="a")
    desk.claim(mail, 1)
    moves = Moves(desk.store, desk.clock, SystemDice())
    task = moves.start("mail", target="other").result(30)

    for _ in range(3):
        moves.step(task.task_id, now=desk.now).result(30)

    assert desk.counts(mail).ready == 0
    assert moves.get(task.task_id).result(30).moved == 4
    other = desk.read(lambda s: s.queues.find("other"))
    assert [m.is_blocked for m in desk.browse(other, State.READY)] == [False, True, True, True]


def test_dead_letters_come_into_a_limited_queue_one_after_the_other(desk):
    letters = desk.queue("letters", max_leased_per_group=1)
    mail = desk.queue("mail", max_attempts=1, dead_letter_queue="letters", max_leased_per_group=3)
    ids = desk.send_many(mail, 3, group="a")
    for m in desk.claim(mail, 9):
        desk.act(Verb.FAIL, m)

    assert desk.claim_ids(letters) == ids[:1]

    no = letters.queue_no
    moved = desk.write(lambda s: s.messages.redrive(no, to=None, limit=9, now=desk.now))
    assert moved == 2
    assert desk.claim_ids(mail) == ids[1:]


def test_purging_a_limited_queue_leaves_nothing_held_back(desk, mail):
    desk.send_many(mail, 5, group="a")
    desk.claim(mail, 1)

    assert desk.write(lambda s: s.messages.purge(mail.queue_no, limit=3, now=desk.now)) == 3
    check_books(desk)
    assert desk.write(lambda s: s.messages.purge(mail.queue_no, limit=9, now=desk.now)) == 2


def test_of_each_group_only_so_many_are_claimed_in_a_time(desk, slow):
    a, b = desk.send_many(slow, 5, group="a"), desk.send_many(slow, 3, group="b")

    assert desk.claim_ids(slow) == [*a[:2], *b[:2]]
    assert desk.claim_ids(slow) == []
    desk.clock.advance(ms=999)
    assert desk.claim_ids(slow) == []
    desk.clock.advance(ms=1)
    assert desk.claim_ids(slow) == [a[2], b[2]]
    desk.clock.advance(seconds=10)
    assert desk.claim_ids(slow) == a[3:]


def test_the_next_one_of_a_group_waits_for_the_instant_and_claims_are_told(desk, slow):
    ids = desk.send_many(slow, 5, group="a")
    desk.claim(slow, 9)

    waiting = desk.browse(slow, State.WAITING)

    assert [(m.id, m.due_at - desk.now) for m in waiting] == [(ids[2], 1_000), (ids[3], 2_000)]
    assert desk.submit_claim(slow).result(30).next_due_at == desk.now + 1_000


def test_what_nobody_claimed_for_long_is_not_made_up_for(desk, slow):
    ids = desk.send_many(slow, 9, group="a")
    desk.clock.advance(minutes=10)

    assert desk.claim_ids(slow) == ids[:2]
    assert desk.claim_ids(slow) == []


def test_one_that_waits_for_its_instant_cannot_be_brought_forward_by_hand(desk, slow):
    ids = desk.send_many(slow, 4, group="a")
    desk.claim(slow, 9)

    desk.alter(ids[2], lambda m, _: lifecycle.reschedule(m, due_at=desk.now, now=desk.now))

    assert desk.claim_ids(slow) == []
    desk.clock.advance(seconds=2)
    assert sorted(desk.claim_ids(slow)) == sorted(ids[2:])


def test_both_limits_hold_at_the_same_time(desk):
    both = desk.queue(
        "both", max_leased_per_group=1, rate_per_group=Rate(1, SECOND, 5), lease_ms=MINUTE
    )
    ids = desk.send_many(both, 7, group="a")
    for message_id in ids[:5]:
        [held] = desk.claim(both, 9)
        assert held.id == message_id
        desk.complete(held)

    assert desk.claim(both, 9) == []
    desk.clock.advance(seconds=2)
    assert desk.claim_ids(both) == [ids[5]]


def test_the_bucket_of_a_group_is_forgotten_when_it_is_full_again(desk, slow):
    desk.send_many(slow, 1, group="a")
    desk.claim(slow, 9)
    desk.clock.advance(seconds=1)

    assert desk.write(lambda s: s.tidying.forget_paces(now=desk.now, limit=10)) == 1
