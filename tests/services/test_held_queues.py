"""Held queues are unheld by hand: one, those of a circuit, or all of them."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from penstock.domain.errors import QueueNotFound
from penstock.domain.queue.queue import Queue
from penstock.services.circuits import held_queues
from penstock.services.directory import Directory
from penstock.services.queues import Queues
from tests.services.floor import HASH, HOLD, OPEN, OTHER, OTHER_HASH, PROBE, Floor
from tests.store.desk import Desk

Unhold = Callable[[Queue], Queue]


@pytest.fixture
def unhold(desk: Desk) -> Unhold:
    queues = Queues(desk.store, desk.clock, Directory(desk.store, desk.clock))
    return lambda queue: queues.unhold(queue.name).result().queue


@pytest.fixture
def held(floor: Floor, queue: Queue, other: Queue) -> list[Queue]:
    """Two queues that an open circuit holds, and one of another circuit."""
    third = floor.desk.queue("q3")
    floor.fail(queue)
    assert floor.ask(other).permit is HOLD
    floor.fail(third, pattern=OTHER)
    assert all(floor.is_held(one) for one in (queue, other, third))
    return [queue, other, third]


def unhold_all(floor: Floor, circuit: str | None = None) -> int:
    total, after = 0, 0
    while True:
        unheld = floor.circuits.held_queues.unhold_some(circuit, after=after).result()
        total += unheld.count
        if unheld.after is None:
            return total
        after = unheld.after


def test_one_queue_is_unheld_and_neither_circuit_nor_line_remembers_it(floor, held, unhold):
    first, second, _ = held

    assert unhold(first).held_by is None

    assert not floor.is_held(first)
    assert floor.is_held(second)
    assert [one.queue for one in floor.desk.read(lambda s: s.circuits.held(HASH))] == ["q2"]
    floor.circuits.close(HASH).result()
    assert floor.desk.read(lambda s: s.circuits.line(9)) == [second.queue_no]
    assert unhold(second).held_by is None
    assert floor.desk.read(lambda s: s.circuits.line(9)) == []


def test_it_is_told_who_unheld_which_queue(floor, held, unhold):
    unhold(held[0])

    fact = floor.facts()[-1]
    assert (fact.kind, fact.at) == ("circuit_queues_unheld", floor.desk.now)
    assert json.loads(fact.data) == {"queues": 1, "queue": "q1", "by": "operator"}


def test_a_queue_that_is_not_held_stays_as_it_is(floor, queue, unhold):
    unhold(queue)

    assert floor.facts() == []
    assert floor.desk.read(lambda s: s.queues.get(queue.queue_no)).version == queue.version
    floor.desk.write(lambda s: s.queues.remove(queue.queue_no, now=floor.desk.now))
    with pytest.raises(QueueNotFound):
        unhold(queue)


def test_a_paused_queue_that_is_unheld_stays_paused(floor, held, unhold):
    floor.desk.pause(held[0])

    after = unhold(held[0])

    assert after.is_paused
    assert after.held_by is None


def test_while_its_circuit_is_open_a_queue_is_held_again_with_its_next_request(floor, held, unhold):
    unhold(held[0])

    assert floor.ask(held[0]).permit is HOLD
    assert floor.is_held(held[0])


def test_while_its_circuit_is_half_open_an_unheld_queue_tries(floor, held, unhold):
    floor.half_open()

    unhold(held[0])

    assert floor.ask(held[0]).permit is PROBE


def test_all_queues_of_a_circuit_are_unheld(floor, held):
    assert unhold_all(floor, HASH) == 2

    assert [floor.is_held(one) for one in held] == [False, False, True]
    assert floor.state is OPEN
    assert json.loads(floor.facts()[-1].data) == {"queues": 2, "by": "operator"}
    assert unhold_all(floor, "0" * 32) == 0


def test_every_queue_is_unheld_also_those_in_the_line_and_of_removed_circuits(floor, held):
    floor.circuits.close(HASH).result()
    floor.routes.remove().result()
    assert sum(floor.circuits.overview().result().held.values()) == 3

    assert unhold_all(floor) == 3

    assert not any(floor.is_held(one) for one in held)
    assert floor.desk.read(lambda s: s.circuits.line(9)) == []
    facts = (floor.facts()[-1], floor.facts(OTHER_HASH)[-1])
    assert [json.loads(fact.data)["queues"] for fact in facts] == [2, 1]


def test_many_queues_are_unheld_in_chunks(floor, held, monkeypatch):
    monkeypatch.setattr(held_queues, "CHUNK", 1)

    assert floor.circuits.held_queues.unhold_some().result().count == 1
    assert unhold_all(floor) == 2


def test_queues_that_wait_to_be_unheld_still_count_as_held(floor, held):
    floor.circuits.close(HASH).result()

    view = floor.circuits.one(HASH).result()
    assert (view.held, view.awaiting_unhold) == (2, 2)
    overview = floor.circuits.overview().result()
    assert overview.circuits == floor.circuits.all().result()
    assert overview.circuits[HASH] == view
    assert (overview.held, overview.awaiting_unhold) == ({HASH: 2, OTHER_HASH: 1}, 2)


def test_what_an_open_circuit_holds_is_not_released_by_itself(floor, held):
    assert floor.circuits.held_queues.release_idle() == 0

    assert all(floor.is_held(one) for one in held)


def test_however_many_are_idle_all_of_them_are_released(floor, held, monkeypatch):
    monkeypatch.setattr(held_queues, "CHUNK", 1)
    floor.circuits.breaker.reset().result()

    assert floor.circuits.held_queues.release_idle() == 3

    assert not any(floor.is_held(one) for one in held)
    assert floor.circuits.held_queues.release_idle() == 0
