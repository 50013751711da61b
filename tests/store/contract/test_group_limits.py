"""Limits per group: leases at the same time, and claims per time."""

import pytest

from penstock.domain.limits import MINUTE, SECOND
from penstock.domain.message import lifecycle
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.rate import Rate
from penstock.outbound.dice import SystemDice
from penstock.services.bulk.moves import MoveService
from tests.factories import BACKOFF_MS
from tests.store.counter_checks import check_counters


@pytest.fixture
def mail(driver):
    return driver.queue("mail", max_leased_per_group=2, lease_ms=MINUTE, max_attempts=9)


@pytest.fixture
def slow(driver):
    """One a second of each group, two at once."""
    return driver.queue("slow", rate_per_group=Rate(1, SECOND, 2), lease_ms=MINUTE)


def test_the_leases_of_each_group_are_limited(driver, mail):
    a, b = driver.send_many(mail, 4, group="a"), driver.send_many(mail, 3, group="b")
    free = driver.send_many(mail, 3)

    assert driver.claim_ids(mail) == [*a[:2], *b[:2], *free]
    assert driver.claim_ids(mail) == []


def test_a_group_at_its_limit_does_not_delay_others(driver, mail):
    driver.send_many(mail, 500, group="a")
    last = driver.send(mail, group="b")

    assert len(driver.claim(mail, 2)) == 2
    assert driver.claim_ids(mail) == [last]


@pytest.mark.parametrize("verb", [Verb.COMPLETE, Verb.CANCEL, Verb.BURY, Verb.TIME_OUT])
def test_the_end_of_a_lease_admits_the_next_message_of_the_group(driver, mail, verb):
    ids = driver.send_many(mail, 4, group="a")
    held = driver.claim(mail, 9)

    driver.act(verb, held[1])

    assert driver.claim_ids(mail) == [ids[2]]


def test_a_released_message_precedes_those_behind_it(driver, mail):
    ids = driver.send_many(mail, 4, group="a")
    held = driver.claim(mail, 9)

    driver.act(Verb.RELEASE, held[1])

    assert driver.claim_ids(mail) == [ids[1]]


def test_a_message_that_backs_off_does_not_count_towards_the_limit(driver, mail):
    ids = driver.send_many(mail, 4, group="a")
    held = driver.claim(mail, 9)

    driver.act(Verb.FAIL, held[0])
    assert driver.claim_ids(mail) == [ids[2]]

    driver.clock.advance(ms=BACKOFF_MS)
    assert driver.claim_ids(mail) == []  # two are leased, and it waits for one of them
    driver.complete(held[1])
    assert driver.claim_ids(mail) == [ids[0]]


def test_expired_leases_make_room_in_their_group(driver, mail):
    ids = driver.send_many(mail, 4, group="a")
    driver.claim(mail, 9)
    driver.clock.advance(minutes=1)

    assert driver.claim_ids(mail) == ids[:2]


def test_an_admitted_message_that_is_cancelled_or_expires_makes_room(driver, mail):
    first = driver.send(mail, group="a", expires_in_ms=5)
    ids = [first, *driver.send_many(mail, 4, group="a")]

    driver.alter(ids[1], lambda m, _: lifecycle.cancel(m))
    assert [m.is_blocked for m in driver.browse(mail, State.READY)] == [False] * 2 + [True] * 2
    driver.clock.advance(ms=5)

    assert driver.claim_ids(mail) == ids[2:4]


def test_a_delayed_message_takes_no_room_before_it_is_due(driver, mail):
    driver.send_many(mail, 3, group="a", delay_ms=50)
    ids = driver.send_many(mail, 2, group="a")

    assert driver.claim_ids(mail) == ids


def test_urgent_messages_of_a_group_are_admitted_first(driver, mail):
    driver.send_many(mail, 4, group="a")
    urgent = driver.send(mail, group="a", priority=-5)
    held = driver.claim(mail, 9)

    driver.complete(held[0])

    assert driver.claim_ids(mail) == [urgent]


def test_a_move_takes_all_whether_held_back_or_not(driver, mail):
    driver.queue("other", max_leased_per_group=1)
    driver.send_many(mail, 5, group="a")
    driver.claim(mail, 1)
    moves = MoveService(driver.store, driver.clock, SystemDice())
    task = moves.start("mail", target="other").result(30)

    for _ in range(3):
        moves.step(task.task_id, now=driver.now).result(30)

    assert driver.counts(mail).ready == 0
    assert moves.get(task.task_id).result(30).moved == 4
    other = driver.read(lambda s: s.queues.find("other"))
    assert [m.is_blocked for m in driver.browse(other, State.READY)] == [False, True, True, True]


def test_dead_letters_come_into_a_limited_queue_one_after_the_other(driver):
    letters = driver.queue("letters", max_leased_per_group=1)
    mail = driver.queue("mail", max_attempts=1, dead_letter_queue="letters", max_leased_per_group=3)
    ids = driver.send_many(mail, 3, group="a")
    for m in driver.claim(mail, 9):
        driver.act(Verb.FAIL, m)

    assert driver.claim_ids(letters) == ids[:1]

    no = letters.queue_no
    moved = driver.write(lambda s: s.messages.redrive(no, to=None, limit=9, now=driver.now))
    assert moved == 2
    assert driver.claim_ids(mail) == ids[1:]


def test_purging_a_limited_queue_leaves_nothing_held_back(driver, mail):
    driver.send_many(mail, 5, group="a")
    driver.claim(mail, 1)

    assert driver.write(lambda s: s.messages.purge(mail.queue_no, limit=3, now=driver.now)) == 3
    check_counters(driver)
    assert driver.write(lambda s: s.messages.purge(mail.queue_no, limit=9, now=driver.now)) == 2


def test_the_claim_rate_of_each_group_is_limited(driver, slow):
    a, b = driver.send_many(slow, 5, group="a"), driver.send_many(slow, 3, group="b")

    assert driver.claim_ids(slow) == [*a[:2], *b[:2]]
    assert driver.claim_ids(slow) == []
    driver.clock.advance(ms=999)
    assert driver.claim_ids(slow) == []
    driver.clock.advance(ms=1)
    assert driver.claim_ids(slow) == [a[2], b[2]]
    driver.clock.advance(seconds=10)
    assert driver.claim_ids(slow) == a[3:]


def test_the_next_message_of_a_group_waits_for_its_instant_and_claims_report_it(driver, slow):
    ids = driver.send_many(slow, 5, group="a")
    driver.claim(slow, 9)

    waiting = driver.browse(slow, State.WAITING)

    assert [(m.id, m.due_at - driver.now) for m in waiting] == [(ids[2], 1_000), (ids[3], 2_000)]
    assert driver.submit_claim(slow).result(30).next_due_at == driver.now + 1_000


def test_unused_rate_is_not_made_up_for(driver, slow):
    ids = driver.send_many(slow, 9, group="a")
    driver.clock.advance(minutes=10)

    assert driver.claim_ids(slow) == ids[:2]
    assert driver.claim_ids(slow) == []


def test_a_message_that_waits_for_its_instant_cannot_be_brought_forward_by_hand(driver, slow):
    ids = driver.send_many(slow, 4, group="a")
    driver.claim(slow, 9)

    driver.alter(ids[2], lambda m, _: lifecycle.reschedule(m, due_at=driver.now, now=driver.now))

    assert driver.claim_ids(slow) == []
    driver.clock.advance(seconds=2)
    assert sorted(driver.claim_ids(slow)) == sorted(ids[2:])


def test_both_limits_hold_at_the_same_time(driver):
    both = driver.queue(
        "both", max_leased_per_group=1, rate_per_group=Rate(1, SECOND, 5), lease_ms=MINUTE
    )
    ids = driver.send_many(both, 7, group="a")
    for message_id in ids[:5]:
        [held] = driver.claim(both, 9)
        assert held.id == message_id
        driver.complete(held)

    assert driver.claim(both, 9) == []
    driver.clock.advance(seconds=2)
    assert driver.claim_ids(both) == [ids[5]]


def test_the_bucket_of_a_group_is_forgotten_when_it_is_full_again(driver, slow):
    driver.send_many(slow, 1, group="a")
    driver.claim(slow, 9)
    driver.clock.advance(seconds=1)

    assert driver.write(lambda s: s.maintenance.forget_rates(now=driver.now, limit=10)) == 1
