"""Circuits that an operator closes or opens, and the settings that all circuits share."""

from __future__ import annotations

import pytest

from penstock.domain.circuit.circuit import circuit_hash
from penstock.domain.circuit.settings import BreakerSettings
from penstock.domain.errors import (
    CircuitNotFound,
    InvalidRequest,
)
from tests.services.driver import (
    CLOSED,
    FAILURE,
    GO,
    HASH,
    HOLD,
    ON,
    OPEN,
    OTHER,
    CircuitDriver,
)


def test_closing_a_closed_circuit_forgets_its_outcomes(driver, queue):
    driver.report(driver.ask(queue), FAILURE)

    driver.circuits.close(HASH).result()

    assert driver.store_driver.read(lambda s: s.circuits.outcomes(HASH, FAILURE)) == {}
    assert driver.circuits.find(HASH).result().circuit.fail_ratio == 0


def test_closing_an_unknown_circuit_changes_nothing(driver):
    driver.circuits.close("0" * 32).result()

    assert driver.circuits.all().result() == {}
    assert driver.circuits.status("0" * 32).result() is CLOSED
    assert driver.circuits.find("0" * 32).result() is None


def test_closing_all_closes_open_and_half_open_circuits(driver, queue, other):
    assert driver.circuits.close_all().result() == 0
    driver.fail(queue)
    driver.half_open()
    driver.fail(other, pattern=OTHER)

    assert driver.circuits.close_all().result() == 2

    views = driver.circuits.all().result()
    assert {view.circuit.state for view in views.values()} == {CLOSED}
    line = driver.store_driver.read(lambda s: s.circuits.next_for_release(9))
    assert line == [queue.queue_no, other.queue_no]


def test_a_circuit_opened_by_an_operator_stays_open_until_an_operator_closes_it(driver, queue):
    driver.circuits.force_open(HASH).result()
    assert driver.ask(queue).permit is HOLD

    driver.half_open()
    assert driver.state is OPEN
    assert driver.circuits.find(HASH).result().circuit.is_forced

    driver.circuits.close(HASH).result()
    assert driver.state is CLOSED
    assert driver.ask(queue).permit is GO


def test_an_unknown_circuit_is_not_opened(driver):
    with pytest.raises(CircuitNotFound):
        driver.circuits.force_open("0" * 32).result()

    jobs = circuit_hash("stripe")
    assert driver.circuits.force_open(jobs, pattern="stripe").result().state is OPEN
    assert driver.ask_for_job().permit is HOLD


def test_settings_have_gateleens_defaults_until_they_are_set(store_driver):
    driver = CircuitDriver(store_driver)

    assert driver.circuits.breaker.get().result() == driver.circuits.settings == BreakerSettings()


def test_settings_are_taken_by_all_nodes_and_reset_for_all(store_driver):
    here, there = CircuitDriver(store_driver), CircuitDriver(store_driver)
    wanted = BreakerSettings(**ON)

    assert here.circuits.breaker.put(wanted).result() == wanted
    assert here.circuits.settings == wanted, "at once where they were put"
    assert there.circuits.breaker.get().result() == wanted
    there.circuits.refresh()
    assert there.circuits.settings == wanted

    there.circuits.breaker.reset().result()
    here.circuits.refresh()
    assert here.circuits.settings == BreakerSettings()
    assert here.circuits.breaker.get().result() == BreakerSettings()


def test_settings_out_of_range_are_refused_and_not_kept(driver):
    before = driver.circuits.settings

    with pytest.raises(InvalidRequest, match="error_threshold_percentage"):
        driver.circuits.breaker.put(BreakerSettings(error_threshold_percentage=101))

    assert driver.circuits.settings == driver.circuits.breaker.get().result() == before


def test_settings_that_this_version_cannot_read_leave_the_present_ones(
    driver, store_driver, caplog
):
    before = driver.circuits.settings
    store_driver.write(
        lambda s: s.documents.put("circuit_breaker", '{"of_the_future": 1}', now=store_driver.now)
    )

    driver.circuits.refresh()

    assert driver.circuits.settings == before
    assert "ignoring the stored" in caplog.text
