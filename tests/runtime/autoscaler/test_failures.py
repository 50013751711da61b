"""What fails around the autoscaler: it goes on, says so once, and does nothing rash."""

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
from penstock.runtime.autoscaler.background import Threads
from tests.runtime.autoscaler.yard import BUSY, QUIET, AtOnce, Slow, Yard, fleet
from tests.services.breaking import BreakingStore

T = TypeVar("T")
DOWN = SourceUnavailable("rabbit does not answer")
LOST = ReplicasUnavailable("the cluster does not answer")


class EverySecondSlow(Slow):
    times = 0

    def begin(self, name: str, what: Callable[[], T]) -> Future[T]:
        self.times += 1
        return super().begin(name, what) if self.times % 2 == 0 else AtOnce().begin(name, what)


def troubles(yard: Yard, name: str = "mail") -> list[str]:
    return [fact["code"] for fact in yard.facts("scaling_trouble", name)]


def recoveries(yard: Yard, name: str = "mail") -> list[dict[str, Any]]:
    return yard.facts("scaling_recovered", name)


# ---- sources


def test_a_source_that_is_down_for_minutes_changes_nothing_and_is_told_once(
    yard: Yard, caplog: pytest.LogCaptureFixture
) -> None:
    yard.start()
    yard.managers["mail"].running = 3
    yard.load(DOWN)

    yard.run(30)  # five minutes

    assert yard.managers["mail"].asked == []
    assert troubles(yard) == ["source_unavailable"]
    assert caplog.text.count("rabbit does not answer") == 1
    [trouble] = yard.status().troubles
    assert (trouble.part, trouble.code) == ("source", "source_unavailable")


def test_a_fleet_acts_only_when_all_of_its_queues_can_be_read(yard: Yard) -> None:
    yard.start(fleet("mail", queue=None, queues=("mail", "post")))
    yard.managers["mail"].running = 1
    yard.load(BUSY)
    yard.loads["own"].by_queue["post"] = QueueUnknown("there is no queue 'post'")
    yard.run(4)
    assert yard.managers["mail"].asked == []
    assert troubles(yard) == ["queue_unknown"]

    yard.loads["own"].by_queue["post"] = Sample(ready=2, consume_rate=1.0, oldest_ms=7)
    yard.run(2)

    assert yard.managers["mail"].asked == [6]
    found = yard.status().sample
    assert found is not None
    assert (found.ready, found.oldest_ms, found.consume_rate) == (102, 7, 2.0)
    assert [one.queue for one in found.queues] == ["mail", "post"]
    assert yard.status().queues == ("mail", "post")


def test_when_the_source_is_back_work_goes_on_and_that_is_told(yard: Yard) -> None:
    yard.start()
    yard.managers["mail"].running = 1
    yard.load(DOWN)
    yard.run(30)

    yard.load(BUSY)
    yard.run(2)

    assert yard.managers["mail"].asked == [6]
    [back] = recoveries(yard)
    assert (back["part"], back["lasted_ms"]) == ("source", 300_000)
    assert yard.status().troubles == ()


def test_the_minimum_is_kept_while_the_source_is_down(yard: Yard) -> None:
    yard.start(fleet("mail", min=2))
    yard.load(DOWN)

    yard.run(3)

    assert yard.managers["mail"].running == 2


def test_a_source_that_is_down_does_not_hold_up_fleets_of_others(yard: Yard) -> None:
    yard.start(fleet("mail", source="rabbit"), fleet("post"))
    yard.managers["post"].running = 1
    yard.load(DOWN, "rabbit")
    yard.load(BUSY)

    yard.run(2)

    assert yard.managers["post"].running == 6


@pytest.mark.parametrize(
    "wrong",
    [
        Sample(ready=-5),
        Sample(ready=10, consume_rate=math.nan),
        Sample(ready=10, consume_rate=-3.0),
        Sample(ready=0, publish_rate=math.inf),
    ],
)
def test_answers_that_cannot_be_true_are_not_acted_upon(yard: Yard, wrong: Sample) -> None:
    yard.start()
    yard.managers["mail"].running = 3
    yard.load(wrong)

    yard.run(5)

    assert yard.managers["mail"].asked == []
    assert troubles(yard) == ["source_unavailable"]


def test_a_queue_that_is_not_there_yet_is_told_once(
    yard: Yard, caplog: pytest.LogCaptureFixture
) -> None:
    yard.start()
    yard.load(QueueUnknown("there is no queue 'mail'"))

    yard.run(20)

    assert troubles(yard) == ["queue_unknown"]
    assert caplog.text.count("there is no queue 'mail'") == 1


def test_an_error_nobody_thought_of_does_not_end_the_loop(yard: Yard) -> None:
    yard.start(fleet("mail"), fleet("post", source="rabbit"))
    yard.managers["mail"].running = 1
    yard.load(RuntimeError("division by cucumber"), "rabbit")
    yard.load(BUSY)

    yard.run(2)

    assert yard.managers["mail"].running == 6
    assert troubles(yard, "post") == ["internal"]


def test_a_broker_that_falls_silent_under_pressure_is_still_under_pressure(yard: Yard) -> None:
    yard.start(fleet("mail", yield_order=1))
    yard.managers["mail"].running = 3
    yard.load(BUSY)
    yard.loads["own"].found = Pressure(memory_percent=95.0)
    yard.run()
    yard.loads["own"].found = DOWN
    yard.load(DOWN)

    yard.run(5)

    assert yard.managers["mail"].running == 0
    assert troubles(yard) == ["source_unavailable"]  # and not of pressure as well


# ---- answers that do not come


def test_a_slow_source_holds_up_nobody_and_its_late_answer_is_dropped(yard: Yard) -> None:
    aside = Slow("mail")
    yard.start(fleet("mail", source="rabbit"), fleet("post"), aside=aside, deadline_ms=30_000)
    yard.managers["mail"].running = yard.managers["post"].running = 1
    yard.load(BUSY, "rabbit")
    yard.load(BUSY)

    yard.run(4)  # mail is asked once, and post four times

    assert yard.managers["post"].asked == [6, 11]
    assert len(aside.waiting) == 1
    assert troubles(yard) == ["slow"]

    aside.answer()  # at last, but too late to be of use
    yard.run()
    assert yard.status().state.window.samples == ()

    aside.fleets.clear()
    aside.answer()
    yard.run(3)
    assert yard.managers["mail"].asked == [6]
    assert [back["code"] for back in recoveries(yard)] == ["slow"]


def test_a_tick_does_not_wait_for_answers(yard: Yard) -> None:
    yard.start(aside=Slow("mail"))

    soon = yard.tick()

    assert yard.desk.now < soon <= yard.desk.now + 100


def test_a_manager_that_does_not_come_back_from_scaling_is_told_and_not_asked_again(
    yard: Yard,
) -> None:
    aside = EverySecondSlow("mail")  # it is asked, and then it scales
    yard.start(fleet("mail", min=1), aside=aside, deadline_ms=30_000)

    yard.run(6)

    assert yard.managers["mail"].asked == []
    assert len(aside.waiting) == 1
    assert troubles(yard) == ["slow"]
    [fact] = yard.facts("scaling_decision", "mail")
    assert (fact["acted"], fact["error"]) == (False, "slow")


def test_so_many_that_hang_do_not_keep_others_from_being_asked(yard: Yard) -> None:
    hanging = [f"hangs{number}" for number in range(40)]
    aside = Slow(*hanging)
    yard.start(*(fleet(name, source="rabbit") for name in hanging), fleet("mail"), aside=aside)
    yard.managers["mail"].running = 1
    yard.load(BUSY)

    yard.run(12)

    assert yard.managers["mail"].running > 1


def test_questions_are_asked_in_threads_of_their_own() -> None:
    name = Threads().begin("mail", lambda: threading.current_thread().name)
    failed = Threads().begin("mail", lambda: 1 // 0)

    assert name.result(10) == "penstock-fleet-mail"
    with pytest.raises(ZeroDivisionError):
        failed.result(10)


# ---- managers


def test_a_manager_that_is_lost_changes_nothing_and_is_told_once(yard: Yard) -> None:
    yard.start(fleet("mail", min=2), fleet("post"))
    yard.managers["mail"].said = LOST
    yard.managers["post"].running = 1
    yard.load(BUSY)

    yard.run(30)

    assert yard.managers["mail"].asked == []
    assert troubles(yard) == ["replicas_unavailable"]
    assert yard.managers["post"].running > 1  # a lost one holds up nobody else


def test_when_the_manager_is_back_work_goes_on(yard: Yard) -> None:
    yard.start(fleet("mail", min=2))
    yard.managers["mail"].said = LOST
    yard.run(10)

    yard.managers["mail"].said = None
    yard.run(2)

    assert yard.managers["mail"].running == 2
    assert [back["part"] for back in recoveries(yard)] == ["replicas"]


@pytest.mark.parametrize(
    "lie",
    [
        Replicas(running=-1, requested=0),
        Replicas(running=2, starting=-1, requested=0),
        Replicas(running=10**8, requested=10**8),
    ],
)
def test_a_count_that_cannot_be_true_is_not_acted_upon(yard: Yard, lie: Replicas) -> None:
    yard.start(fleet("mail", min=1))
    yard.managers["mail"].said = lie
    yard.load(BUSY)

    yard.run(5)

    assert yard.managers["mail"].asked == []
    assert troubles(yard) == ["replicas_unavailable"]


def test_a_count_that_flaps_is_not_acted_upon_and_is_told(yard: Yard) -> None:
    yard.start(fleet("mail", min=1))
    yard.managers["mail"].running = 8
    yard.load(BUSY)
    yard.run()
    for number in range(20):
        running = 8 if number % 2 else 0
        yard.managers["mail"].said = Replicas(running=running, requested=running)
        yard.run()

    assert yard.managers["mail"].asked == []
    assert troubles(yard) == ["replicas_flapping"]


def test_a_manager_that_says_it_has_none_stops_nobody(yard: Yard) -> None:
    """It has eight and says none: one message must not leave one worker of eight."""
    yard.start()
    yard.managers["mail"].running = 8
    yard.load(Sample(ready=8, consume_rate=8.0))
    yard.run()

    yard.managers["mail"].said = Replicas(running=0, requested=0)
    yard.run()
    yard.managers["mail"].said = None
    yard.run()

    assert yard.managers["mail"].asked == []


def test_workers_that_were_asked_for_and_never_appear_are_reported(yard: Yard) -> None:
    yard.start(fleet("mail", patience_ms=60_000))
    yard.managers["mail"].said = Replicas(running=1, requested=6)  # whatever happens
    yard.load(BUSY)

    yard.run(10)

    assert "replicas_missing" in troubles(yard)
    assert set(yard.managers["mail"].asked) == {6}  # no spiral


def test_a_crash_loop_is_a_trouble_and_takes_no_worker_from_others(yard: Yard) -> None:
    yard.start(
        fleet("mail", patience_ms=60_000),
        fleet("rich", source="rich", min=2, cooldown_down_runs=1_000),
    )
    yard.managers["mail"].running, yard.managers["rich"].running = 1, 12
    yard.load(Sample(ready=10, consume_rate=12.0), "rich")  # ten would do
    yard.load(BUSY)
    yard.run(2)
    assert yard.managers["rich"].asked == [10]
    yard.managers["mail"].said = Replicas(running=1, requested=6)
    yard.managers["mail"].failing = ReplicasUnavailable("its processes crash, 2 times in a row")

    yard.run(10)

    [trouble] = yard.status().troubles
    assert (trouble.part, trouble.code) == ("replicas", "replicas_unavailable")
    assert troubles(yard) == ["replicas_unavailable"]
    assert yard.managers["rich"].asked == [10]


def test_scaling_that_fails_is_told_once_and_tried_again(yard: Yard) -> None:
    yard.start(fleet("mail", min=2))
    yard.managers["mail"].error = ReplicasUnavailable("forbidden")
    yard.run(10)
    assert len(yard.managers["mail"].asked) == 10
    assert troubles(yard) == ["replicas_unavailable"]
    [fact] = yard.facts("scaling_decision", "mail")
    assert (fact["acted"], fact["error"]) == (False, "replicas_unavailable")

    yard.managers["mail"].error = None
    yard.run()

    assert yard.managers["mail"].running == 2
    assert [back["part"] for back in recoveries(yard)] == ["scaling"]


def test_scaling_that_failed_does_not_cool_down(yard: Yard) -> None:
    yard.start(fleet("mail", min=2, cooldown_runs=5))
    yard.managers["mail"].error = ReplicasUnavailable("forbidden")

    yard.run(3)

    assert len(yard.managers["mail"].asked) == 3


# ---- the store


def test_what_could_not_be_kept_is_kept_with_the_next_tick(yard: Yard) -> None:
    broken = BreakingStore(yard.desk.store, "documents", "put")
    yard.scaling._store = broken
    yard.start(fleet("mail", min=1))
    with pytest.raises(StoreUnavailable):
        yard.tick()

    broken.is_broken = False
    yard.desk.clock.advance(seconds=1)
    yard.tick()

    assert yard.managers["mail"].asked == [1]
    assert [fact["reason"] for fact in yard.facts("scaling_decision")] == ["below_minimum"]
    assert yard.status().sample == QUIET
