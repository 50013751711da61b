"""Held queues are unheld by hand: one, those of a circuit, or all of them."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from penstock.domain.errors import QueueNotFound
from penstock.domain.queue.queue import Queue
from penstock.services.circuits import held_queues
from penstock.services.directory import Directory
from penstock.services.queues import QueueService
from tests.services.driver import HASH, HOLD, OPEN, OTHER, OTHER_HASH, PROBE, CircuitDriver
from tests.store.driver import StoreDriver

Unhold = Callable[[Queue], Queue]


@pytest.fixture
def unhold(store_driver: StoreDriver) -> Unhold:
    queues = QueueService(
        store_driver.store, store_driver.clock, Directory(store_driver.store, store_driver.clock)
    )
    return lambda queue: queues.unhold(queue.name).result().queue


@pytest.fixture
def held(driver: CircuitDriver, queue: Queue, other: Queue) -> list[Queue]:
    """Two queues that an open circuit holds, and one of another circuit."""
    third = driver.store_driver.queue("q3")
    driver.fail(queue)
    assert driver.ask(other).permit is HOLD
    driver.fail(third, pattern=OTHER)
    assert all(driver.is_held(one) for one in (queue, other, third))
    return [queue, other, third]


def unhold_all(driver: CircuitDriver, circuit: str | None = None) -> int:
    total, after = 0, 0
    while True:
        unheld = driver.circuits.held_queues.unhold_some(circuit, after=after).result()
        total += unheld.count
        if unheld.after is None:
            return total
        after = unheld.after


def test_an_unheld_queue_is_neither_held_nor_scheduled_for_release(driver, held, unhold):
    first, second, _ = held

    assert unhold(first).held_by is None

    assert not driver.is_held(first)
    assert driver.is_held(second)
    assert [one.queue for one in driver.store_driver.read(lambda s: s.circuits.held(HASH))] == [
        "q2"
    ]
    driver.circuits.close(HASH).result()
    assert driver.store_driver.read(lambda s: s.circuits.next_for_release(9)) == [second.queue_no]
    assert unhold(second).held_by is None
    assert driver.store_driver.read(lambda s: s.circuits.next_for_release(9)) == []


def test_unholding_records_which_queues_were_unheld_by_whom(driver, held, unhold):
    unhold(held[0])

    fact = driver.facts()[-1]
    assert (fact.kind, fact.at) == ("circuit_queues_unheld", driver.store_driver.now)
    assert json.loads(fact.data) == {"queues": 1, "queue": "q1", "by": "operator"}


def test_a_queue_that_is_not_held_stays_as_it_is(driver, queue, unhold):
    unhold(queue)

    assert driver.facts() == []
    assert driver.store_driver.read(lambda s: s.queues.get(queue.queue_no)).version == queue.version
    driver.store_driver.write(
        lambda s: s.queues.remove(queue.queue_no, now=driver.store_driver.now)
    )
    with pytest.raises(QueueNotFound):
        unhold(queue)


def test_a_paused_queue_that_is_unheld_stays_paused(driver, held, unhold):
    driver.store_driver.pause(held[0])

    after = unhold(held[0])

    assert after.is_paused
    assert after.held_by is None


def test_while_its_circuit_is_open_a_queue_is_held_again_with_its_next_request(
    driver, held, unhold
):
    unhold(held[0])

    assert driver.ask(held[0]).permit is HOLD
    assert driver.is_held(held[0])


def test_while_its_circuit_is_half_open_an_unheld_queue_tries(driver, held, unhold):
    driver.half_open()

    unhold(held[0])

    assert driver.ask(held[0]).permit is PROBE


def test_all_queues_of_a_circuit_are_unheld(driver, held):
    assert unhold_all(driver, HASH) == 2

    assert [driver.is_held(one) for one in held] == [False, False, True]
    assert driver.state is OPEN
    assert json.loads(driver.facts()[-1].data) == {"queues": 2, "by": "operator"}
    assert unhold_all(driver, "0" * 32) == 0


def test_every_queue_is_unheld_also_those_in_the_line_and_of_removed_circuits(driver, held):
    driver.circuits.close(HASH).result()
    driver.routes.remove().result()
    assert sum(driver.circuits.overview().result().held.values()) == 3

    assert unhold_all(driver) == 3

    assert not any(driver.is_held(one) for one in held)
    assert driver.store_driver.read(lambda s: s.circuits.next_for_release(9)) == []
    facts = (driver.facts()[-1], driver.facts(OTHER_HASH)[-1])
    assert [json.loads(fact.data)["queues"] for fact in facts] == [2, 1]


def test_many_queues_are_unheld_in_chunks(driver, held, monkeypatch):
    monkeypatch.setattr(held_queues, "CHUNK", 1)

    assert driver.circuits.held_queues.unhold_some().result().count == 1
    assert unhold_all(driver) == 2


def test_queues_that_wait_to_be_unheld_still_count_as_held(driver, held):
    driver.circuits.close(HASH).result()

    view = driver.circuits.find(HASH).result()
    assert (view.held, view.awaiting_unhold) == (2, 2)
    overview = driver.circuits.overview().result()
    assert overview.circuits == driver.circuits.all().result()
    assert overview.circuits[HASH] == view
    assert (overview.held, overview.awaiting_unhold) == ({HASH: 2, OTHER_HASH: 1}, 2)


def test_queues_that_an_open_circuit_holds_are_not_released(driver, held):
    assert driver.circuits.held_queues.release_idle() == 0

    assert all(driver.is_held(one) for one in held)


def test_however_many_are_idle_all_of_them_are_released(driver, held, monkeypatch):
    monkeypatch.setattr(held_queues, "CHUNK", 1)
    driver.circuits.breaker.reset().result()

    assert driver.circuits.held_queues.release_idle() == 3

    assert not any(driver.is_held(one) for one in held)
    assert driver.circuits.held_queues.release_idle() == 0
