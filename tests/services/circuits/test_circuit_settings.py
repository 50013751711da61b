"""Circuits with settings of their own, on every node."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.circuit.circuit import OutcomeReport, circuit_hash
from penstock.domain.circuit.overrides import NONE, BreakerOverrides
from penstock.domain.circuit.settings import BreakerSettings
from penstock.domain.errors import CircuitNotFound, InvalidRequest
from tests.services.driver import (
    CLOSED,
    FAILURE,
    GO,
    HALF,
    HASH,
    HOLD,
    ON,
    OPEN,
    OTHER,
    OTHER_HASH,
    PATTERN,
    PROBE,
    SUCCESS,
    CircuitDriver,
)

STRIPE = circuit_hash("stripe")
UNKNOWN = "0" * 32


def override(
    driver: CircuitDriver, one: str = HASH, *, route: str | None = None, **values: Any
) -> None:
    change = driver.circuits.own_settings.change
    change(one, lambda _: BreakerOverrides(**values), route=route).result()


def test_a_circuit_opens_by_its_own_thresholds(driver, queue, other):
    override(driver, min_queue_sample_count=5)
    override(driver, OTHER_HASH, error_threshold_percentage=100, min_queue_sample_count=1)

    driver.fail(queue, 4)
    driver.report(driver.ask(other, OTHER), SUCCESS, "a")
    driver.report(driver.ask(other, OTHER), FAILURE, "b")
    assert driver.state is CLOSED
    assert driver.circuits.status(OTHER_HASH).result() is CLOSED

    driver.fail(queue, 5)
    assert driver.state is OPEN


def test_settings_count_at_once_here_and_with_the_next_look_elsewhere(driver, store_driver):
    there = CircuitDriver(store_driver)
    there.circuits.refresh()

    override(driver, slow_call_ms=5)

    assert driver.circuits.settings_of(HASH).slow_call_ms == 5
    assert driver.circuits.settings_of(OTHER_HASH) == driver.circuits.settings
    assert there.circuits.settings_of(HASH).slow_call_ms is None
    there.circuits.refresh()
    assert there.circuits.settings_of(HASH) == driver.circuits.settings_of(HASH)

    override(there)
    driver.circuits.refresh()
    assert driver.circuits.settings_of(HASH) == driver.circuits.settings


def test_a_new_default_reaches_circuits_that_do_not_override_it(driver):
    override(driver, slow_call_ms=5)

    driver.circuits.breaker.put(BreakerSettings(error_threshold_percentage=20)).result()

    found = driver.circuits.own_settings.get(HASH).result()
    assert (found.settings.error_threshold_percentage, found.settings.slow_call_ms) == (20, 5)
    assert found.settings == driver.circuits.settings_of(HASH)
    driver.circuits.breaker.reset().result()
    assert driver.circuits.settings_of(HASH).slow_call_ms == 5


def test_one_circuit_alone_may_be_checked(store_driver, queue, other):
    driver = CircuitDriver(store_driver)
    driver.begin(circuit_check_enabled=False, statistics_update_enabled=False)
    assert not driver.circuits.is_watching
    override(driver, circuit_check_enabled=True, statistics_update_enabled=True)
    assert driver.circuits.is_checking

    driver.fail(queue)
    driver.fail(other, pattern=OTHER)

    assert driver.ask(queue).permit is HOLD
    assert driver.is_held(queue)
    assert list(driver.circuits.all().result()) == [HASH]
    assert driver.ask(other, OTHER).permit is GO


def test_a_circuit_that_is_not_checked_any_more_lets_its_queues_go(driver, queue, other):
    driver.fail(queue)
    driver.fail(other, pattern=OTHER)

    override(driver, circuit_check_enabled=False)
    driver.circuits.held_queues.release_idle()

    assert driver.store_driver.read(lambda s: s.circuits.next_for_release(9)) == [queue.queue_no]
    assert driver.ask(queue).permit is GO
    assert driver.ask(other, OTHER).permit is HOLD


def test_a_circuit_stays_open_for_its_own_time(driver, queue, other):
    override(driver, min_open_ms=5_000)
    driver.fail(queue)
    driver.fail(other, pattern=OTHER)
    states = []
    for _ in range(5):
        driver.half_open()
        states.append(driver.state)

    assert states == [*[OPEN] * 4, HALF]
    assert driver.circuits.status(OTHER_HASH).result() is HALF


def test_one_circuit_is_probed_one_by_one_and_another_is_not(driver, queue, other):
    override(driver, single_probe=True)
    driver.fail(queue)
    driver.fail(queue, pattern=OTHER)
    driver.half_open()

    assert [driver.ask(other).permit for _ in range(2)] == [PROBE, HOLD]
    assert [driver.ask(other, OTHER).permit for _ in range(2)] == [PROBE, PROBE]


def test_jobs_wait_by_the_settings_of_their_route(driver):
    override(driver, STRIPE, route="stripe", min_open_ms=60_000)
    permitted = driver.ask_for_job()
    driver.circuits.report([OutcomeReport(permitted, name, FAILURE) for name in "ab"]).result()

    assert driver.ask_for_job().wait_ms == 61_000


def test_slow_answers_of_one_circuit_are_failures(driver, queue):
    override(driver, slow_call_ms=100)
    for pattern in (PATTERN, OTHER):
        permitted = driver.ask(queue, pattern)
        slow = [OutcomeReport(permitted, name, SUCCESS, took_ms=100) for name in "ab"]
        driver.circuits.report(slow).result()

    assert driver.state is OPEN
    assert driver.circuits.status(OTHER_HASH).result() is CLOSED


def test_the_circuits_with_settings_of_their_own_are_listed(driver):
    override(driver, STRIPE, route="stripe", single_probe=True)
    override(driver, slow_call_ms=5)

    found = driver.circuits.own_settings.all().result()

    assert [(one.route, one.circuit, one.overrides.values()) for one in found] == [
        (PATTERN, HASH, {"slow_call_ms": 5}),
        ("stripe", STRIPE, {"single_probe": True}),
    ]
    override(driver, STRIPE)
    assert [one.route for one in driver.circuits.own_settings.all().result()] == [PATTERN]


def test_an_unknown_circuit_is_named_by_its_route(driver):
    own = driver.circuits.own_settings
    for ask in (own.get(UNKNOWN), own.change(UNKNOWN, lambda before: before)):
        with pytest.raises(CircuitNotFound):
            ask.result()
    with pytest.raises(InvalidRequest, match="the circuit of route 'stripe' is"):
        own.get(UNKNOWN, route="stripe").result()

    assert own.get(STRIPE, route="stripe").result().overrides == NONE
    override(driver, STRIPE, route="stripe", single_probe=True)
    assert own.get(STRIPE).result().route == "stripe", "known from now on"


def test_settings_outlast_the_circuit_and_its_rule(driver, queue):
    override(driver, slow_call_ms=5)
    driver.fail(queue)
    driver.routes.remove().result()

    assert driver.circuits.all().result() == {}
    assert driver.circuits.own_settings.get(HASH).result().overrides.slow_call_ms == 5


def test_settings_out_of_range_are_refused_and_not_kept(driver):
    override(driver, slow_call_ms=5)
    before = driver.circuits.settings_of(HASH)

    with pytest.raises(InvalidRequest, match="error_threshold_percentage"):
        override(driver, error_threshold_percentage=101)

    assert driver.circuits.settings_of(HASH) == before
    assert driver.circuits.own_settings.get(HASH).result().settings == before


def test_each_change_is_a_fact(driver):
    override(driver, slow_call_ms=5)

    assert [fact.kind for fact in driver.facts()] == ["breaker_changed"]


def test_settings_that_this_version_cannot_read_leave_the_present_ones(
    driver, store_driver, caplog
):
    override(driver, slow_call_ms=5)
    text = '{"/pay/(.*)": {"of_the_future": 1}}'
    store_driver.write(
        lambda s: s.documents.put("circuit_breaker_overrides", text, now=store_driver.now)
    )

    driver.circuits.refresh()

    assert driver.circuits.settings_of(HASH) == BreakerSettings(**ON, slow_call_ms=5)
    assert "ignoring the stored settings of single circuits" in caplog.text
