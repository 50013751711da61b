"""The loop runs each duty when it is due, and an error in one does not stop the others."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest

from penstock.domain.errors import Forbidden, StoreUnavailable
from penstock.ports.store import OUTAGES
from penstock.runtime.duties import PeriodicDuty
from penstock.runtime.loop import DutyLoop
from tests.clocks import NOON, ManualClock

PATIENCE_S = 60
HOUR_MS = 3_600_000
AFTER_ERROR_MS = 1_000


class ScriptedDuty:
    """A duty that does what the test says."""

    def __init__(self, name: str, *, every_ms: int, error: Exception | None = None) -> None:
        self.name = name
        self.error = error
        self.ticks: list[int] = []
        self._every_ms = every_ms
        self._ticked = threading.Condition()

    def tick(self, now: int) -> int:
        with self._ticked:
            self.ticks.append(now)
            self._ticked.notify_all()
        if self.error is not None:
            raise self.error
        return now + self._every_ms

    def wait_for(self, ticks: int) -> bool:
        with self._ticked:
            return self._ticked.wait_for(lambda: len(self.ticks) >= ticks, PATIENCE_S)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def stopping() -> Iterator[list[DutyLoop]]:
    """Loops that end with the test."""
    loops: list[DutyLoop] = []
    yield loops
    for loop in loops:
        loop.stop()


def test_a_duty_gets_the_time_of_its_own_tick(clock: ManualClock) -> None:
    def take_long() -> None:
        clock.advance(seconds=90)

    slow = PeriodicDuty("slow", HOUR_MS, take_long)
    after = ScriptedDuty("after", every_ms=HOUR_MS)

    DutyLoop([slow, after], clock).run_due()

    assert after.ticks == [NOON + 90_000]


def test_every_duty_runs_at_the_start(clock: ManualClock) -> None:
    first, second = ScriptedDuty("first", every_ms=100), ScriptedDuty("second", every_ms=500)

    next_due = DutyLoop([first, second], clock).run_due()

    assert first.ticks == second.ticks == [NOON]
    assert next_due == NOON + 100


def test_a_duty_runs_again_at_the_instant_it_returned(clock: ManualClock) -> None:
    often, seldom = ScriptedDuty("often", every_ms=100), ScriptedDuty("seldom", every_ms=250)
    loop = DutyLoop([often, seldom], clock)
    loop.run_due()

    for _ in range(5):
        clock.advance(ms=50)
        loop.run_due()

    assert often.ticks == [NOON, NOON + 100, NOON + 200]
    assert seldom.ticks == [NOON, NOON + 250]


@pytest.mark.parametrize("error", [ValueError("ours"), StoreUnavailable("the disk's")])
def test_a_duty_that_fails_runs_again_after_a_second_and_delays_no_other(
    clock: ManualClock, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    failing = ScriptedDuty("failing", every_ms=50, error=error)
    fine = ScriptedDuty("fine", every_ms=50)
    loop = DutyLoop([failing, fine], clock)

    with caplog.at_level(logging.WARNING, "penstock.duties"):
        next_due = loop.run_due()

    assert next_due == NOON + 50
    assert fine.ticks == [NOON]
    assert "failing" in caplog.text
    clock.advance(ms=AFTER_ERROR_MS - 1)
    loop.run_due()
    assert failing.ticks == [NOON]
    clock.advance(ms=1)
    failing.error = None
    loop.run_due()
    assert failing.ticks == [NOON, NOON + AFTER_ERROR_MS]


def test_a_bug_is_logged_with_its_traceback_and_a_refusal_with_its_text_only(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    mistake, refusal = ValueError("ours"), Forbidden("not today")
    duties = [
        ScriptedDuty("a", every_ms=1, error=mistake),
        ScriptedDuty("b", every_ms=1, error=refusal),
    ]

    with caplog.at_level(logging.WARNING, "penstock.duties"):
        DutyLoop(duties, clock).run_due()

    records = [record for record in caplog.records if record.name == "penstock.duties"]
    assert [record.exc_info is not None for record in records] == [True, False]


def test_without_duties_there_is_nothing_to_do(clock: ManualClock) -> None:
    assert DutyLoop([], clock).run_due() > clock.now()


def test_the_thread_survives_a_duty_that_fails(
    clock: ManualClock, stopping: list[DutyLoop]
) -> None:
    failing, fine = (
        ScriptedDuty("failing", every_ms=0, error=ValueError()),
        ScriptedDuty("fine", every_ms=0),
    )
    loop = DutyLoop([failing, fine], clock)
    stopping.append(loop)

    loop.start()

    assert fine.wait_for(5)
    assert len(failing.ticks) == 1, "for it, no second has passed"


def test_a_loop_that_sleeps_for_an_hour_stops_at_once(
    clock: ManualClock, stopping: list[DutyLoop]
) -> None:
    duty = ScriptedDuty("seldom", every_ms=HOUR_MS)
    loop = DutyLoop([duty], clock)
    stopping.append(loop)
    loop.start()
    assert duty.wait_for(1)

    stopped = threading.Thread(target=loop.stop)
    stopped.start()
    stopped.join(PATIENCE_S)

    assert not stopped.is_alive()
    assert duty.ticks == [NOON]


def test_a_loop_that_was_never_started_can_be_stopped(clock: ManualClock) -> None:
    duty = ScriptedDuty("never", every_ms=1)
    loop = DutyLoop([duty], clock)

    loop.stop()

    assert duty.ticks == []


def test_a_plain_function_is_a_duty_too() -> None:
    done: list[str] = []

    next_due = PeriodicDuty("note", 250, lambda: done.append("done")).tick(NOON)

    assert done == ["done"]
    assert next_due == NOON + 250


def test_a_lasting_failure_is_logged_once_and_so_is_recovery(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "penstock.duties")
    duty = ScriptedDuty("reaper", every_ms=100, error=Forbidden("not today"))
    loop = DutyLoop([duty], clock)

    for _ in range(3):
        loop.run_due()
        clock.advance(seconds=1)
    duty.error = None
    loop.run_due()

    # Servers that other tests share may log something at the same moment.
    logged = [r.getMessage() for r in caplog.records if r.name == "penstock.duties"]
    assert logged == [
        "duty reaper could not run: not today",
        "duty reaper runs again",
    ]


def test_a_store_out_of_reach_is_logged_once_for_all_duties_and_so_is_its_return(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, OUTAGES)
    names = ("these-reap", "these-prune", "these-move")
    duties = [ScriptedDuty(name, every_ms=100, error=StoreUnavailable("gone")) for name in names]
    loop = DutyLoop(duties, clock)

    for _ in range(2):
        loop.run_due()
        clock.advance(seconds=1)
    for duty in duties:
        duty.error = None
    loop.run_due()

    logged = [r.getMessage() for r in caplog.records if r.name == OUTAGES and "these-" in r.message]
    assert logged == ["duty these-reap could not run: gone", "duty these-move runs again"]
