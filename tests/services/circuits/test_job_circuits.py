"""The breaker of jobs, which name their route and have no queue to be held; on both stores."""

from __future__ import annotations

import pytest

from penstock.domain.circuit.circuit import (
    PROBE_MS,
    Circuit,
    OutcomeReport,
    circuit_hash,
    retry_ms,
    wait_ms,
)
from penstock.domain.circuit.settings import BreakerSettings, BreakerTask
from penstock.services.circuits.permits import PermitRequest
from tests.services.driver import CLOSED, FAILURE, GO, HALF, HOLD, OPEN, PATTERN, PROBE, SUCCESS

STRIPE = circuit_hash("stripe")


def fail(driver, route="stripe", count=2):
    permitted = driver.ask_for_job(route)
    driver.circuits.report(
        [OutcomeReport(permitted, f"job-{i}", FAILURE) for i in range(count)]
    ).result()
    return permitted


def test_a_job_has_the_same_breaker_by_the_name_of_its_route(driver):
    permitted = fail(driver)

    refused = driver.ask_for_job()
    assert (permitted.permit, refused.permit) == (GO, HOLD)
    assert driver.ask_for_job("mail").permit is GO, "another route has another circuit"

    driver.half_open()
    driver.report(driver.ask_for_job(), SUCCESS)
    assert driver.circuits.status(STRIPE).result() is CLOSED
    assert driver.ask_for_job().permit is GO


def test_a_job_and_the_deliveries_of_a_route_of_that_name_have_one_circuit(driver, queue):
    fail(driver, PATTERN)

    assert driver.state is OPEN
    assert driver.ask(queue).permit is HOLD


def test_one_job_at_a_time_is_tried_whatever_deliveries_do(driver):
    assert not driver.circuits.settings.single_probe
    fail(driver)
    driver.half_open()

    assert [driver.ask_for_job().permit for _ in range(3)] == [PROBE, HOLD, HOLD]


def test_a_job_that_came_to_nothing_leaves_its_try_to_the_next(driver):
    fail(driver)
    driver.half_open()
    driver.report(driver.ask_for_job(), None)

    assert driver.circuits.status(STRIPE).result() is HALF
    assert driver.ask_for_job().permit is PROBE


def test_a_try_that_fails_keeps_the_others_until_the_next_tick(driver):
    fail(driver)
    driver.half_open()
    driver.report(driver.ask_for_job(), FAILURE, "probe")

    permitted = driver.ask_for_job()

    assert (permitted.permit, permitted.wait_ms) == (HOLD, 2_000), "the tick comes in a second"


def test_many_routes_are_asked_for_at_once(driver):
    fail(driver)

    wanted = [PermitRequest(route, is_of_table=False) for route in ("stripe", "mail", PATTERN)]
    permitted = driver.circuits.permits(wanted).result()

    assert [(one.pattern, one.permit, one.wait_ms) for one in permitted] == [
        ("stripe", HOLD, 2_000),
        ("mail", GO, 0),
        (PATTERN, GO, 0),
    ]


def test_a_job_that_took_too_long_counts_as_a_failure_if_so_set(driver):
    driver.begin(slow_call_ms=500)
    permitted = driver.ask_for_job()

    driver.circuits.report([OutcomeReport(permitted, "fast", SUCCESS, 499)]).result()
    driver.circuits.report([OutcomeReport(permitted, "slow", SUCCESS, 500)]).result()

    assert driver.circuits.all().result()[STRIPE].circuit.fail_ratio == 50


def test_a_circuit_of_jobs_does_not_go_with_the_rules(driver):
    fail(driver)

    driver.routes.remove().result()

    assert list(driver.circuits.all().result()) == [STRIPE]


@pytest.mark.parametrize(
    ("task", "retry"),
    [
        (BreakerTask(enabled=True, interval_ms=30_000), 35_000),
        (BreakerTask(enabled=True, interval_ms=3_600_000), 125_000),
        (BreakerTask(enabled=False, interval_ms=30_000), 125_000),
    ],
)
def test_a_job_that_was_tried_and_failed_comes_back_behind_the_others(task, retry):
    assert retry_ms(BreakerSettings(open_to_half_open=task)) == retry


NOW = 1_000_000_000
TASK = {"open_to_half_open": BreakerTask(enabled=True, interval_ms=60_000)}
IN_HALF = {"state": HALF, "opened_at": NOW - 70_000}


@pytest.mark.parametrize(
    ("circuit", "settings", "next_tick", "wait"),
    [
        ({"state": OPEN}, TASK, 30_000, 31_000),
        ({"state": OPEN}, TASK, -5_000, 2_000),
        ({"state": OPEN}, TASK, None, 2_000),
        ({"state": OPEN}, TASK, 3_600_000, 120_000),
        ({"state": OPEN}, {}, None, 120_000),
        ({"state": OPEN, "is_forced": True}, TASK, 1_000, 120_000),
        # It stays open for longer than until the next tick.
        ({"state": OPEN, "opened_at": NOW, "reopened": 1}, TASK | {"open_growth": 1.5}, 0, 91_000),
        ({**IN_HALF, "probe_until": NOW + PROBE_MS}, TASK, 0, 2_000),
        ({**IN_HALF, "probe_until": NOW + PROBE_MS - 7_000}, TASK, 0, 7_000),
        ({**IN_HALF, "probe_until": NOW + 10}, TASK, 0, 120_000),
        (IN_HALF, TASK, 0, 2_000),
    ],
)
def test_a_job_waits_until_it_is_worth_asking_again(circuit, settings, next_tick, wait):
    made = Circuit(pattern="stripe", **circuit)
    tick_at = None if next_tick is None else NOW + next_tick

    assert wait_ms(made, BreakerSettings(**settings), next_tick_at=tick_at, now=NOW) == wait
