"""A replica manager that fails: the autoscaler keeps running and does nothing rash."""

from __future__ import annotations

import pytest

from penstock.domain.errors import (
    ReplicasUnavailable,
    StoreUnavailable,
)
from penstock.domain.scaling.recommendation import Replicas, Sample
from tests.runtime.autoscaler.driver import BUSY, QUIET, AutoscalerDriver, fleet
from tests.runtime.autoscaler.failures import LOST, recoveries, troubles
from tests.services.failing_store import FailingStore


@pytest.fixture
def backend() -> str:
    """Failures of a cluster are not in the store; test_leading runs on both."""
    return "sqlite"


def test_a_manager_that_is_down_changes_nothing_and_is_reported_once(
    driver: AutoscalerDriver,
) -> None:
    driver.start(fleet("mail", min=2), fleet("post"))
    driver.managers["mail"].said = LOST
    driver.managers["post"].running = 1
    driver.load(BUSY)

    driver.run(30)

    assert driver.managers["mail"].asked == []
    assert troubles(driver) == ["replicas_unavailable"]
    assert driver.managers["post"].running > 1  # a lost one delays no other


def test_when_the_manager_is_back_scaling_continues(driver: AutoscalerDriver) -> None:
    driver.start(fleet("mail", min=2))
    driver.managers["mail"].said = LOST
    driver.run(10)

    driver.managers["mail"].said = None
    driver.run(2)

    assert driver.managers["mail"].running == 2
    assert [back["part"] for back in recoveries(driver)] == ["replicas"]


@pytest.mark.parametrize(
    "lie",
    [
        Replicas(running=-1, requested=0),
        Replicas(running=2, starting=-1, requested=0),
        Replicas(running=10**8, requested=10**8),
    ],
)
def test_a_count_that_cannot_be_true_is_not_acted_upon(
    driver: AutoscalerDriver, lie: Replicas
) -> None:
    driver.start(fleet("mail", min=1))
    driver.managers["mail"].said = lie
    driver.load(BUSY)

    driver.run(5)

    assert driver.managers["mail"].asked == []
    assert troubles(driver) == ["replicas_unavailable"]


def test_a_count_that_flaps_is_not_acted_upon_and_is_reported(
    driver: AutoscalerDriver,
) -> None:
    driver.start(fleet("mail", min=1))
    driver.managers["mail"].running = 8
    driver.load(BUSY)
    driver.run()
    for number in range(20):
        running = 8 if number % 2 else 0
        driver.managers["mail"].said = Replicas(running=running, requested=running)
        driver.run()

    assert driver.managers["mail"].asked == []
    assert troubles(driver) == ["replicas_flapping"]


def test_a_manager_that_reports_no_workers_stops_none(driver: AutoscalerDriver) -> None:
    """It has eight and says none: one message must not leave one worker of eight."""
    driver.start()
    driver.managers["mail"].running = 8
    driver.load(Sample(ready=8, consume_rate=8.0))
    driver.run()

    driver.managers["mail"].said = Replicas(running=0, requested=0)
    driver.run()
    driver.managers["mail"].said = None
    driver.run()

    assert driver.managers["mail"].asked == []


def test_requested_workers_that_never_appear_are_reported(
    driver: AutoscalerDriver,
) -> None:
    driver.start(fleet("mail", patience_ms=60_000))
    driver.managers["mail"].said = Replicas(running=1, requested=6)  # whatever happens
    driver.load(BUSY)

    driver.run(10)

    assert "replicas_missing" in troubles(driver)
    assert set(driver.managers["mail"].asked) == {6}  # no spiral


def test_a_crash_loop_is_reported_and_takes_no_worker_from_others(
    driver: AutoscalerDriver,
) -> None:
    driver.start(
        fleet("mail", patience_ms=60_000),
        fleet("rich", source="rich", min=2, cooldown_down_runs=1_000),
    )
    driver.managers["mail"].running, driver.managers["rich"].running = 1, 12
    driver.load(Sample(ready=10, consume_rate=12.0), "rich")  # ten would do
    driver.load(BUSY)
    driver.run(2)
    assert driver.managers["rich"].asked == [10]
    driver.managers["mail"].said = Replicas(running=1, requested=6)
    driver.managers["mail"].failing = ReplicasUnavailable("its processes crashed 2 times in a row")

    driver.run(10)

    [trouble] = driver.status().troubles
    assert (trouble.part, trouble.code) == ("replicas", "replicas_unavailable")
    assert troubles(driver) == ["replicas_unavailable"]
    assert driver.managers["rich"].asked == [10]


def test_scaling_that_fails_is_reported_once_and_retried(driver: AutoscalerDriver) -> None:
    driver.start(fleet("mail", min=2))
    driver.managers["mail"].error = ReplicasUnavailable("forbidden")
    driver.run(10)
    assert len(driver.managers["mail"].asked) == 10
    assert troubles(driver) == ["replicas_unavailable"]
    [fact] = driver.facts("scaling_decision", "mail")
    assert (fact["acted"], fact["error"]) == (False, "replicas_unavailable")

    driver.managers["mail"].error = None
    driver.run()

    assert driver.managers["mail"].running == 2
    assert [back["part"] for back in recoveries(driver)] == ["scaling"]


def test_scaling_that_failed_does_not_cool_down(driver: AutoscalerDriver) -> None:
    driver.start(fleet("mail", min=2, cooldown_runs=5))
    driver.managers["mail"].error = ReplicasUnavailable("forbidden")

    driver.run(3)

    assert len(driver.managers["mail"].asked) == 3


def test_a_status_that_could_not_be_stored_is_stored_by_the_next_tick(
    driver: AutoscalerDriver,
) -> None:
    broken = FailingStore(driver.store_driver.store, "documents", "put")
    driver.scaling._store = broken
    driver.start(fleet("mail", min=1))
    with pytest.raises(StoreUnavailable):
        driver.tick()

    broken.is_broken = False
    driver.store_driver.clock.advance(seconds=1)
    driver.tick()

    assert driver.managers["mail"].asked == [1]
    assert [fact["reason"] for fact in driver.facts("scaling_decision")] == ["below_minimum"]
    assert driver.status().sample == QUIET
