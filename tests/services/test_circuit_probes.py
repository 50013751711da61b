"""Probes: who may try while a circuit is half open, and what follows from how it ends."""

from __future__ import annotations

from penstock.domain.circuit.circuit import PROBE_MS
from penstock.services.circuits.circuits import Reported, Wanted
from tests.services.floor import (
    CLOSED,
    FAILURE,
    HALF,
    HASH,
    HOLD,
    OPEN,
    PATTERN,
    PROBE,
    SUCCESS,
    Floor,
)


def test_a_probe_that_succeeds_closes_the_circuit_and_its_samples_are_forgotten(
    floor, queue, other
):
    floor.fail(queue)
    floor.half_open()
    floor.tell(floor.ask(other), SUCCESS)

    view = floor.circuits.one(HASH).result()
    assert (view.circuit.state, view.circuit.fail_ratio, view.held) == (CLOSED, 0, 1)
    assert floor.is_held(queue), "it is in the line"
    assert floor.desk.read(lambda s: s.circuits.line(9)) == [queue.queue_no]
    assert floor.desk.read(lambda s: s.circuits.samples(HASH, FAILURE)) == {}


def test_a_probe_that_fails_opens_it_again_and_nothing_else_changes(floor, queue, other):
    floor.fail(queue)
    floor.half_open()
    floor.tell(floor.ask(other), FAILURE)

    view = floor.circuits.one(HASH).result()
    assert (view.circuit.state, view.circuit.reopened, view.held) == (OPEN, 1, 1)
    assert set(floor.desk.read(lambda s: s.circuits.samples(HASH, FAILURE))) == {"f0", "f1", "r"}


def test_a_request_that_was_let_go_before_it_opened_decides_nothing(floor, queue, other):
    early = floor.ask(other)
    floor.fail(queue)
    floor.half_open()

    floor.tell(early, SUCCESS)

    assert floor.state is HALF


def test_the_first_answer_wins_and_late_ones_of_an_older_time_decide_nothing(floor, queue, other):
    floor.fail(queue)
    floor.half_open()
    first, second = floor.ask(other), floor.ask(other)
    floor.circuits.report([Reported(first, "a", FAILURE), Reported(second, "b", SUCCESS)]).result()
    assert floor.state is OPEN

    floor.half_open()
    floor.tell(second, SUCCESS)
    assert floor.state is HALF, "that was said of another time"

    floor.tell(floor.ask(other), SUCCESS)
    assert floor.state is CLOSED


def test_what_follows_in_a_batch_after_a_probe_has_closed_it_counts_anew(floor, queue, other):
    floor.fail(queue)
    floor.half_open()
    probe = floor.ask(other)
    reports = [Reported(probe, "a", SUCCESS), *(Reported(probe, x, FAILURE) for x in "bc")]

    floor.circuits.report(reports).result()

    assert floor.state is OPEN, "two of two failed since it was closed"
    assert set(floor.desk.read(lambda s: s.circuits.samples(HASH, FAILURE))) == {"b", "c"}
    assert floor.desk.read(lambda s: s.circuits.samples(HASH, SUCCESS)) == {}


def test_without_statistics_a_probe_still_decides(desk, queue, other):
    floor = Floor(desk)
    floor.begin()
    floor.fail(queue)
    floor.begin(statistics_update_enabled=False)
    floor.half_open()

    floor.tell(floor.ask(other), SUCCESS)

    assert floor.state is CLOSED


def test_all_that_are_not_held_may_try_unless_one_at_a_time_is_wanted(desk, queue, other):
    floor = Floor(desk)
    floor.begin()
    floor.fail(queue)
    floor.half_open()
    assert [floor.ask(other).permit for _ in range(3)] == [PROBE] * 3

    floor.begin(single_probe=True)
    probe = floor.ask(other)
    third = desk.queue("q3")
    assert (probe.permit, floor.ask(third).permit) == (PROBE, HOLD)
    assert floor.is_held(third)

    floor.tell(probe, None)
    assert floor.ask(other).permit is PROBE, "nothing came of the first"


def test_of_two_nodes_that_ask_at_once_one_gets_the_single_probe(desk, queue, other, open_store):
    here = Floor(desk)
    here.begin(single_probe=True)
    here.fail(queue)
    here.half_open()
    store = open_store() if desk.store.backend == "postgres" else desk.store
    there = Floor(desk, store)
    there.circuits.refresh()

    wanted = [Wanted(PATTERN, other.queue_no)]
    asked = [node.circuits.permits(wanted).result() for node in (here, there)]
    told = [
        node.circuits.secure(found).result()[0]
        for node, found in zip((here, there), asked, strict=True)
    ]

    assert [found[0].permit for found in asked] == [PROBE, PROBE]
    assert [one.permit for one in told] == [PROBE, HOLD]
    if store is not desk.store:
        store.close()


def test_a_probe_of_which_nothing_is_heard_does_not_keep_others_for_ever(desk, queue, other):
    floor = Floor(desk)
    floor.begin(single_probe=True)
    floor.fail(queue)
    floor.half_open()
    floor.ask(other)

    desk.clock.advance(ms=PROBE_MS - 1)
    assert floor.ask(other).permit is HOLD
    desk.clock.advance(ms=1)
    assert floor.ask(other).permit is PROBE


def test_when_a_probe_has_failed_the_next_half_open_time_has_one_of_its_own(desk, queue, other):
    floor = Floor(desk)
    floor.begin(single_probe=True)
    floor.fail(queue)
    floor.half_open()
    floor.tell(floor.ask(other), FAILURE)
    floor.half_open()

    assert floor.ask(other).permit is PROBE
