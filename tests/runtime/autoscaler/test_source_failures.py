"""A source that fails or does not answer: the autoscaler keeps running and does nothing rash."""

from __future__ import annotations

import math
import threading

import pytest

from penstock.domain.errors import (
    QueueUnknown,
)
from penstock.domain.scaling.pressure import Pressure
from penstock.domain.scaling.recommendation import Sample
from penstock.runtime.autoscaler.fleet_access import BackgroundThreads
from tests.runtime.autoscaler.driver import BUSY, AutoscalerDriver, Slow, fleet
from tests.runtime.autoscaler.failures import DOWN, EverySecondSlow, recoveries, troubles


@pytest.fixture
def backend() -> str:
    """Failures of a cluster are not in the store; test_leading runs on both."""
    return "sqlite"


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
