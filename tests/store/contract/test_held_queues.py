"""Queues that a circuit holds, and the order of their release."""

from __future__ import annotations

import pytest

from penstock.domain.circuit.circuit import HeldQueue
from penstock.domain.queue.queue import Queue
from penstock.ports.store import Claimed, Session
from tests.domain.circuit import oracle
from tests.store.circuit_helpers import (
    CLOSED,
    FAILURE,
    HASH,
    OPEN,
    OTHER,
    OTHER_HASH,
    SUCCESS,
    add,
    get,
    held,
    hold,
    note,
    outcomes,
    queued_for_release,
    release,
)
from tests.store.driver import StoreDriver


@pytest.fixture
def queues(driver: StoreDriver) -> list[Queue]:
    return [driver.queue(f"q{i}") for i in range(3)]


def test_a_held_queue_accepts_sends_but_no_claims_and_spends_no_attempt(driver):
    mail = driver.queue()
    before = driver.send(mail)
    driver.write(lambda s: s.queues.hold([mail.queue_no], by=HASH))
    during = driver.send(mail)

    assert driver.submit_claim(mail).result() == Claimed([])
    assert driver.get(before).attempts == 0
    assert driver.read(lambda s: s.queues.get(mail.queue_no)).held_by == HASH

    assert driver.write(lambda s: s.queues.unhold([mail.queue_no])) == [mail.queue_no]
    assert driver.claim_ids(mail) == [before, during]


def test_holding_and_pausing_are_independent(driver):
    mail = driver.queue()
    driver.send(mail)
    driver.pause(mail)
    driver.write(lambda s: s.queues.hold([mail.queue_no], by=HASH))

    driver.pause(mail, is_paused=False)
    assert driver.claim(mail) == [], "still held"

    driver.pause(mail)
    driver.write(lambda s: s.queues.unhold([mail.queue_no]))
    assert driver.claim(mail) == [], "still paused"

    driver.pause(mail, is_paused=False)
    assert len(driver.claim(mail)) == 1


def test_a_lease_on_a_message_of_a_held_queue_can_be_completed(driver):
    mail = driver.queue()
    driver.send(mail)
    [message] = driver.claim(mail)
    driver.write(lambda s: s.queues.hold([mail.queue_no], by=HASH))

    driver.complete(message)

    assert driver.counts(mail).done_total == 1


def test_releasing_a_queue_wakes_waiting_claims(driver):
    mail, other = driver.queue(), driver.queue("other")
    driver.write(lambda s: s.queues.hold([mail.queue_no], by=HASH))
    woken: dict[int, int] = {}
    driver.store.listen(woken.update)

    released = driver.write(lambda s: s.queues.unhold([mail.queue_no, other.queue_no]))

    assert released == [mail.queue_no], "the other one was not held"
    assert woken.keys() == {mail.queue_no}


def test_holding_changes_nothing_else_about_a_queue(driver):
    mail = driver.queue()
    driver.clock.advance(minutes=1)
    driver.write(lambda s: s.queues.hold([mail.queue_no], by=HASH))

    found = driver.read(lambda s: s.queues.find("mail"))

    assert (found.settings, found.changed_at, found.is_paused) == (
        mail.settings,
        mail.changed_at,
        False,
    )
    assert found.version == mail.version + 1, "caches must see it"
    assert driver.pause(mail).held_by == HASH


def test_a_removed_queue_is_not_held(driver):
    mail = driver.queue()
    driver.write(lambda s: s.queues.remove(mail.queue_no, now=driver.now))

    driver.write(lambda s: s.queues.hold([mail.queue_no], by=HASH))

    assert driver.write(lambda s: s.queues.unhold([mail.queue_no])) == []
    assert driver.write(lambda s: (s.queues.hold([], by=HASH), s.queues.unhold([]))) == (None, [])


def test_a_circuit_knows_its_queues_by_how_long_it_holds_them(driver, queues):
    first, second, third = queues
    at = driver.now
    hold(driver, second)
    hold(driver, third, first)
    hold(driver, second)

    assert held(driver) == [
        HeldQueue("q0", at + 1),
        HeldQueue("q2", at + 1),
        HeldQueue("q1", at + 2),
    ]
    assert driver.read(lambda s: s.circuits.held_counts()) == {HASH: 3}


def test_the_queue_that_waited_longest_goes_first_and_then_to_the_back(driver, queues):
    hold(driver, queues[1])
    hold(driver, queues[0])
    hold(driver, queues[2], pattern=OTHER)
    order = []
    for _ in range(3):

        def rotate(session: Session) -> list[int]:
            found = session.circuits.lock([HASH, OTHER_HASH])
            return session.circuits.rotate(list(found), now=driver.now)

        expected, rotated = oracle.next_probe(held(driver), now=driver.now)
        order.append(sorted(driver.write(rotate)))
        assert held(driver) == sorted(rotated, key=lambda one: (one.at, one.queue))
        assert expected is not None
        driver.clock.advance(ms=1)

    q0, q1, q2 = (queue.queue_no for queue in queues)
    assert order == [[q1, q2], [q0, q2], [q1, q2]], "one per circuit"


def test_a_circuit_without_queues_releases_none(driver):
    add(driver)

    def rotate(session: Session) -> list[int]:
        return session.circuits.rotate(list(session.circuits.lock([HASH])), now=driver.now)

    assert driver.write(rotate) == []
    assert driver.write(lambda s: s.circuits.rotate([], now=driver.now)) == []


def test_closing_queues_the_release_of_held_queues_and_forgets_the_outcomes(driver, queues):
    add(driver, state=OPEN, fail_ratio=90)
    note(driver, ("a", FAILURE), ("b", SUCCESS))
    hold(driver, queues[2])
    hold(driver, queues[0], queues[1])
    expected = oracle.in_order(held(driver))

    release(driver, HASH)

    by_no = {queue.queue_no: queue.name for queue in queues}
    assert [by_no[no] for no in queued_for_release(driver)] == expected == ["q2", "q0", "q1"]
    assert held(driver) == []
    assert outcomes(driver, FAILURE) == outcomes(driver, SUCCESS) == {}
    after = get(driver)
    assert after is not None
    assert (after.state, after.fail_ratio) == (CLOSED, 0)
    assert driver.read(lambda s: s.queues.get(queues[0].queue_no)).held_by == HASH, (
        "not released yet"
    )
    assert note(driver, ("c", FAILURE)).fail_ratio == 100, "counted from the beginning"


def test_other_circuits_keep_what_is_theirs(driver, queues):
    note(driver, ("a", FAILURE), pattern=OTHER)
    hold(driver, queues[0], pattern=OTHER)
    hold(driver, queues[1])

    release(driver, HASH)

    assert [one.queue for one in held(driver, OTHER_HASH)] == ["q0"]
    assert list(outcomes(driver, FAILURE, OTHER_HASH)) == ["a"]


def test_a_circuit_may_be_removed(driver, queues):
    note(driver, ("a", FAILURE))
    hold(driver, queues[0])
    add(driver, OTHER)

    def remove(session: Session) -> None:
        session.circuits.lock([HASH])
        session.circuits.queue_for_release_and_forget([HASH])
        session.circuits.remove([HASH])

    driver.write(remove)

    assert list(driver.read(lambda s: s.circuits.all())) == [OTHER_HASH]
    assert queued_for_release(driver) == [queues[0].queue_no]
    assert outcomes(driver, FAILURE) == {}


def test_queues_that_wait_for_release_and_of_removed_circuits_still_count_as_held(driver, queues):
    hold(driver, queues[0], queues[1])
    hold(driver, queues[2], pattern=OTHER)
    release(driver, HASH)
    assert held(driver) == [], "the circuit has no claim on them any more"

    def counts() -> tuple[dict[str, int], dict[str, int]]:
        return driver.read(lambda s: (s.circuits.held_counts(), s.circuits.awaiting_counts()))

    assert counts() == ({HASH: 2, OTHER_HASH: 1}, {HASH: 2})
    assert driver.read(lambda s: s.circuits.held_names(HASH, limit=9)) == ["q0", "q1"]
    assert driver.read(lambda s: s.circuits.held_names(HASH, limit=1)) == ["q0"]

    def remove(session: Session) -> None:
        session.circuits.lock([HASH])
        session.circuits.remove([HASH])

    driver.write(remove)
    assert counts() == ({HASH: 2, OTHER_HASH: 1}, {HASH: 2})

    driver.write(lambda s: s.queues.unhold(s.circuits.take_for_release(1)))
    assert counts() == ({HASH: 1, OTHER_HASH: 1}, {HASH: 1})
    driver.write(lambda s: s.queues.remove(queues[1].queue_no, now=driver.now))
    assert counts() == ({OTHER_HASH: 1}, {})


def test_held_queues_are_paged_by_number(driver, queues):
    hold(driver, queues[2], queues[0])
    hold(driver, queues[1], pattern=OTHER)
    q0, q1, q2 = (queue.queue_no for queue in queues)

    def page(one: str | None, after: int = 0, limit: int = 9) -> list[tuple[int, str]]:
        return driver.read(lambda s: s.circuits.held_page(one, after=after, limit=limit))

    assert page(None) == [(q0, HASH), (q1, OTHER_HASH), (q2, HASH)]
    assert page(None, after=q0, limit=1) == [(q1, OTHER_HASH)]
    assert page(HASH) == [(q0, HASH), (q2, HASH)]
    assert page(HASH, after=q0) == [(q2, HASH)]
    assert page("0" * 32) == []


def test_dropped_holds_belong_to_no_circuit_and_do_not_wait_for_release(driver, queues):
    first, second, third = queues
    hold(driver, first, second)
    hold(driver, first, third, pattern=OTHER)
    release(driver, OTHER_HASH)
    assert driver.read(lambda s: s.circuits.holding()) == [HASH]
    assert driver.read(lambda s: s.circuits.holders([first.queue_no])) == [HASH]
    assert driver.read(lambda s: s.circuits.holders([third.queue_no])) == []
    assert driver.read(lambda s: s.circuits.holders([])) == []

    def drop(session: Session) -> None:
        session.circuits.lock([HASH])
        session.circuits.drop_holds([HASH], [first.queue_no])
        session.circuits.drop_holds([], [])

    driver.write(drop)

    assert [one.queue for one in held(driver)] == ["q1"]
    assert queued_for_release(driver) == [third.queue_no]


def test_queueing_for_release_keeps_the_outcomes(driver, queues):
    note(driver, ("a", FAILURE))
    hold(driver, queues[0])

    def release(session: Session) -> None:
        session.circuits.queue_for_release(list(session.circuits.lock([HASH])))
        session.circuits.queue_for_release([])

    driver.write(release)

    assert queued_for_release(driver) == [queues[0].queue_no]
    assert held(driver) == []
    assert list(outcomes(driver, FAILURE)) == ["a"]


def test_queues_are_released_first_in_first_out(driver, queues):
    def take(count: int) -> list[int]:
        return driver.write(lambda s: s.circuits.take_for_release(count))

    assert take(1) == []
    hold(driver, queues[1], queues[2])
    release(driver, HASH)
    hold(driver, queues[0], queues[1])
    release(driver, HASH)
    q0, q1, q2 = (queue.queue_no for queue in queues)

    assert take(1) == [q1]
    assert take(2) == [q2, q0]
    assert take(9) == [q1], "as often as it was put there"
    assert take(1) == []


def test_a_removed_queue_is_neither_probed_nor_released(driver, queues):
    hold(driver, queues[0])
    hold(driver, queues[1])
    driver.write(lambda s: s.queues.remove(queues[0].queue_no, now=driver.now))

    def rotate(session: Session) -> list[int]:
        return session.circuits.rotate(list(session.circuits.lock([HASH])), now=driver.now)

    assert driver.write(rotate) == [queues[1].queue_no]
    assert [one.queue for one in held(driver)] == ["q1"]
    release(driver, HASH)
    assert queued_for_release(driver) == [queues[1].queue_no]
