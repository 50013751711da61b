"""Probes: which requests may try while a circuit is half-open, and what their outcomes do."""

from __future__ import annotations

from penstock.domain.circuit.circuit import PROBE_MS, OutcomeReport
from penstock.services.circuits.permits import PermitRequest
from tests.services.driver import (
    CLOSED,
    FAILURE,
    HALF,
    HASH,
    HOLD,
    OPEN,
    PATTERN,
    PROBE,
    SUCCESS,
    CircuitDriver,
)


def test_a_probe_that_succeeds_closes_the_circuit_and_its_outcomes_are_forgotten(
    driver, queue, other
):
    driver.fail(queue)
    driver.half_open()
    driver.report(driver.ask(other), SUCCESS)

    view = driver.circuits.find(HASH).result()
    assert (view.circuit.state, view.circuit.fail_ratio, view.held) == (CLOSED, 0, 1)
    assert driver.is_held(queue), "it is in the line"
    assert driver.store_driver.read(lambda s: s.circuits.next_for_release(9)) == [queue.queue_no]
    assert driver.store_driver.read(lambda s: s.circuits.outcomes(HASH, FAILURE)) == {}


def test_a_probe_that_fails_opens_it_again_and_nothing_else_changes(driver, queue, other):
    driver.fail(queue)
    driver.half_open()
    driver.report(driver.ask(other), FAILURE)

    view = driver.circuits.find(HASH).result()
    assert (view.circuit.state, view.circuit.reopened, view.held) == (OPEN, 1, 1)
    assert set(driver.store_driver.read(lambda s: s.circuits.outcomes(HASH, FAILURE))) == {
        "f0",
        "f1",
        "r",
    }


def test_a_request_permitted_before_the_circuit_opened_decides_nothing(driver, queue, other):
    early = driver.ask(other)
    driver.fail(queue)
    driver.half_open()

    driver.report(early, SUCCESS)

    assert driver.state is HALF


def test_the_first_answer_wins_and_late_ones_of_an_older_time_decide_nothing(driver, queue, other):
    driver.fail(queue)
    driver.half_open()
    first, second = driver.ask(other), driver.ask(other)
    driver.circuits.report(
        [OutcomeReport(first, "a", FAILURE), OutcomeReport(second, "b", SUCCESS)]
    ).result()
    assert driver.state is OPEN

    driver.half_open()
    driver.report(second, SUCCESS)
    assert driver.state is HALF, "that was said of another time"

    driver.report(driver.ask(other), SUCCESS)
    assert driver.state is CLOSED


def test_outcomes_after_a_closing_probe_in_a_batch_count_for_the_closed_circuit(
    driver, queue, other
):
    driver.fail(queue)
    driver.half_open()
    probe = driver.ask(other)
    reports = [
        OutcomeReport(probe, "a", SUCCESS),
        *(OutcomeReport(probe, x, FAILURE) for x in "bc"),
    ]

    driver.circuits.report(reports).result()

    assert driver.state is OPEN, "two of two failed since it was closed"
    assert set(driver.store_driver.read(lambda s: s.circuits.outcomes(HASH, FAILURE))) == {"b", "c"}
    assert driver.store_driver.read(lambda s: s.circuits.outcomes(HASH, SUCCESS)) == {}


def test_without_statistics_a_probe_still_decides(store_driver, queue, other):
    driver = CircuitDriver(store_driver)
    driver.begin()
    driver.fail(queue)
    driver.begin(statistics_update_enabled=False)
    driver.half_open()

    driver.report(driver.ask(other), SUCCESS)

    assert driver.state is CLOSED


def test_all_requests_that_are_not_held_may_probe_unless_single_probe_is_set(
    store_driver, queue, other
):
    driver = CircuitDriver(store_driver)
    driver.begin()
    driver.fail(queue)
    driver.half_open()
    assert [driver.ask(other).permit for _ in range(3)] == [PROBE] * 3

    driver.begin(single_probe=True)
    probe = driver.ask(other)
    third = store_driver.queue("q3")
    assert (probe.permit, driver.ask(third).permit) == (PROBE, HOLD)
    assert driver.is_held(third)

    driver.report(probe, None)
    assert driver.ask(other).permit is PROBE, "nothing came of the first"


def test_one_of_two_nodes_that_ask_at_once_gets_the_single_probe(
    store_driver, queue, other, open_store
):
    here = CircuitDriver(store_driver)
    here.begin(single_probe=True)
    here.fail(queue)
    here.half_open()
    store = open_store() if store_driver.store.backend == "postgres" else store_driver.store
    there = CircuitDriver(store_driver, store)
    there.circuits.refresh()

    wanted = [PermitRequest(PATTERN, other.queue_no)]
    asked = [node.circuits.permits(wanted).result() for node in (here, there)]
    permits = [
        node.circuits.secure(found).result()[0]
        for node, found in zip((here, there), asked, strict=True)
    ]

    assert [found[0].permit for found in asked] == [PROBE, PROBE]
    assert [one.permit for one in permits] == [PROBE, HOLD]
    if store is not store_driver.store:
        store.close()


def test_a_probe_without_an_outcome_does_not_block_others_for_ever(store_driver, queue, other):
    driver = CircuitDriver(store_driver)
    driver.begin(single_probe=True)
    driver.fail(queue)
    driver.half_open()
    driver.ask(other)

    store_driver.clock.advance(ms=PROBE_MS - 1)
    assert driver.ask(other).permit is HOLD
    store_driver.clock.advance(ms=1)
    assert driver.ask(other).permit is PROBE


def test_after_a_failed_probe_the_next_half_open_period_has_a_new_one(store_driver, queue, other):
    driver = CircuitDriver(store_driver)
    driver.begin(single_probe=True)
    driver.fail(queue)
    driver.half_open()
    driver.report(driver.ask(other), FAILURE)
    driver.half_open()

    assert driver.ask(other).permit is PROBE
