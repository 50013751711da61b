"""Failures around the autoscaler: it keeps running, reports them once, and does nothing rash."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

import pytest

from penstock.domain.errors import (
    QueueUnknown,
    ReplicasUnavailable,
    SourceUnavailable,
    StoreUnavailable,
)
from penstock.domain.scaling.pressure import Pressure
from penstock.domain.scaling.recommendation import Replicas, Sample
from penstock.runtime.autoscaler.fleet_access import BackgroundThreads
from tests.runtime.autoscaler.driver import BUSY, QUIET, AtOnce, AutoscalerDriver, Slow, fleet
from tests.services.breaking import BreakingStore

T = TypeVar("T")
DOWN = SourceUnavailable("rabbit does not answer")
LOST = ReplicasUnavailable("the cluster does not answer")


class EverySecondSlow(Slow):
    times = 0

    def begin(self, name: str, what: Callable[[], T]) -> Future[T]:
        self.times += 1
        return super().begin(name, what) if self.times % 2 == 0 else AtOnce().begin(name, what)


def troubles(driver: AutoscalerDriver, name: str = "mail") -> list[str]:
    return [fact["code"] for fact in driver.facts("scaling_trouble", name)]


def recoveries(driver: AutoscalerDriver, name: str = "mail") -> list[dict[str, Any]]:
    return driver.facts("scaling_recovered", name)


# ---- sources


def test_a_source_that_is_down_for_minutes_changes_nothing_and_is_reported_once(
    driver: AutoscalerDriver, caplog: pytest.LogCaptureFixture
) -> None:
    driver.start()
    driver.managers["mail"].running = 3
    driver.load(DOWN)

    driver.run(30)  # five minutes

    assert driver.managers["mail"].asked == []
    assert troubles(driver) == ["source_unavailable"]
    assert caplog.text.count("rabbit does not answer") == 1
    [trouble] = driver.status().troubles
    assert (trouble.part, trouble.code) == ("source", "source_unavailable")


def test_a_fleet_acts_only_when_all_of_its_queues_can_be_read(driver: AutoscalerDriver) -> None:
    driver.start(fleet("mail", queue=None, queues=("mail", "post")))
    driver.managers["mail"].running = 1
    driver.load(BUSY)
    driver.loads["own"].by_queue["post"] = QueueUnknown("queue 'post' does not exist")
    driver.run(4)
    assert driver.managers["mail"].asked == []
    assert troubles(driver) == ["queue_unknown"]

    driver.loads["own"].by_queue["post"] = Sample(ready=2, consume_rate=1.0, oldest_ms=7)
    driver.run(2)

    assert driver.managers["mail"].asked == [6]
    found = driver.status().sample
    assert found is not None
    assert (found.ready, found.oldest_ms, found.consume_rate) == (102, 7, 2.0)
    assert [one.queue for one in found.queues] == ["mail", "post"]
    assert driver.status().queues == ("mail", "post")


def test_when_the_source_is_back_scaling_continues_and_the_recovery_is_reported(
    driver: AutoscalerDriver,
) -> None:
    driver.start()
    driver.managers["mail"].running = 1
    driver.load(DOWN)
    driver.run(30)

    driver.load(BUSY)
    driver.run(2)

    assert driver.managers["mail"].asked == [6]
    [back] = recoveries(driver)
    assert (back["part"], back["lasted_ms"]) == ("source", 300_000)
    assert driver.status().troubles == ()


def test_the_minimum_is_kept_while_the_source_is_down(driver: AutoscalerDriver) -> None:
    driver.start(fleet("mail", min=2))
    driver.load(DOWN)

    driver.run(3)

    assert driver.managers["mail"].running == 2


def test_a_source_that_is_down_does_not_hold_up_fleets_of_others(driver: AutoscalerDriver) -> None:
    driver.start(fleet("mail", source="rabbit"), fleet("post"))
    driver.managers["post"].running = 1
    driver.load(DOWN, "rabbit")
    driver.load(BUSY)

    driver.run(2)

    assert driver.managers["post"].running == 6


@pytest.mark.parametrize(
    "failures",
    [
        Sample(ready=-5),
        Sample(ready=10, consume_rate=math.nan),
        Sample(ready=10, consume_rate=-3.0),
        Sample(ready=0, publish_rate=math.inf),
    ],
)
def test_answers_that_cannot_be_true_are_not_acted_upon(
    driver: AutoscalerDriver, failures: Sample
) -> None:
    driver.start()
    driver.managers["mail"].running = 3
    driver.load(failures)

    driver.run(5)

    assert driver.managers["mail"].asked == []
    assert troubles(driver) == ["source_unavailable"]


def test_a_queue_that_does_not_exist_yet_is_reported_once(
    driver: AutoscalerDriver, caplog: pytest.LogCaptureFixture
) -> None:
    driver.start()
    driver.load(QueueUnknown("queue 'mail' does not exist"))

    driver.run(20)

    assert troubles(driver) == ["queue_unknown"]
    assert caplog.text.count("queue 'mail' does not exist") == 1


def test_an_unexpected_error_does_not_end_the_loop(driver: AutoscalerDriver) -> None:
    driver.start(fleet("mail"), fleet("post", source="rabbit"))
    driver.managers["mail"].running = 1
    driver.load(RuntimeError("division by cucumber"), "rabbit")
    driver.load(BUSY)

    driver.run(2)

    assert driver.managers["mail"].running == 6
    assert troubles(driver, "post") == ["internal"]


def test_a_broker_that_falls_silent_under_pressure_is_still_under_pressure(
    driver: AutoscalerDriver,
) -> None:
    driver.start(fleet("mail", yield_order=1))
    driver.managers["mail"].running = 3
    driver.load(BUSY)
    driver.loads["own"].found = Pressure(memory_percent=95.0)
    driver.run()
    driver.loads["own"].found = DOWN
    driver.load(DOWN)

    driver.run(5)

    assert driver.managers["mail"].running == 0
    assert troubles(driver) == ["source_unavailable"]  # and not of pressure as well


# ---- answers that do not come


def test_a_slow_source_delays_no_other_fleet_and_its_late_answer_is_dropped(
    driver: AutoscalerDriver,
) -> None:
    background = Slow("mail")
    driver.start(
        fleet("mail", source="rabbit"), fleet("post"), background=background, deadline_ms=30_000
    )
    driver.managers["mail"].running = driver.managers["post"].running = 1
    driver.load(BUSY, "rabbit")
    driver.load(BUSY)

    driver.run(4)  # mail is asked once, and post four times

    assert driver.managers["post"].asked == [6, 11]
    assert len(background.waiting) == 1
    assert troubles(driver) == ["slow"]

    background.answer()  # at last, but too late to be of use
    driver.run()
    assert driver.status().state.window.samples == ()

    background.fleets.clear()
    background.answer()
    driver.run(3)
    assert driver.managers["mail"].asked == [6]
    assert [back["code"] for back in recoveries(driver)] == ["slow"]


def test_a_tick_does_not_wait_for_answers(driver: AutoscalerDriver) -> None:
    driver.start(background=Slow("mail"))

    soon = driver.tick()

    assert driver.store_driver.now < soon <= driver.store_driver.now + 100


def test_a_manager_that_hangs_while_scaling_is_reported_and_not_called_again(
    driver: AutoscalerDriver,
) -> None:
    background = EverySecondSlow("mail")  # it is asked, and then it scales
    driver.start(fleet("mail", min=1), background=background, deadline_ms=30_000)

    driver.run(6)

    assert driver.managers["mail"].asked == []
    assert len(background.waiting) == 1
    assert troubles(driver) == ["slow"]
    [fact] = driver.facts("scaling_decision", "mail")
    assert (fact["acted"], fact["error"]) == (False, "slow")


def test_many_fleets_that_hang_do_not_keep_others_from_being_observed(
    driver: AutoscalerDriver,
) -> None:
    hanging = [f"hangs{number}" for number in range(40)]
    background = Slow(*hanging)
    driver.start(
        *(fleet(name, source="rabbit") for name in hanging), fleet("mail"), background=background
    )
    driver.managers["mail"].running = 1
    driver.load(BUSY)

    driver.run(12)

    assert driver.managers["mail"].running > 1


def test_calls_run_in_threads_of_their_own() -> None:
    name = BackgroundThreads().begin("mail", lambda: threading.current_thread().name)
    failed = BackgroundThreads().begin("mail", lambda: 1 // 0)

    assert name.result(60) == "penstock-fleet-mail"
    with pytest.raises(ZeroDivisionError):
        failed.result(60)


# ---- managers


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


# ---- the store


def test_a_status_that_could_not_be_stored_is_stored_by_the_next_tick(
    driver: AutoscalerDriver,
) -> None:
    broken = BreakingStore(driver.store_driver.store, "documents", "put")
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
