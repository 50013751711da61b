"""Running handlers whose job was cancelled are stopped."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, cast

import pytest

from penstock import Penstock, current
from penstock.domain.message.lifecycle import State
from penstock.worker.assignment import Assignment
from penstock.worker.claimed_job import StopReason
from penstock.worker.handling import run
from penstock.worker.lease_keeper import NOTICE_MS
from penstock.worker.running_jobs import GRACE_MS
from penstock.worker.worker import JobWorker
from tests.clocks import ManualClock
from tests.support.waiting import eventually
from tests.worker.driver import LuckyDice
from tests.worker.test_outcomes import AHandler, NoHooks, some_job

PATIENCE_S = 60


@pytest.fixture
def worker(app: Penstock, clock: ManualClock) -> Iterator[JobWorker]:
    made = JobWorker(
        Assignment(queues=("mail",), slots=1, prefetch=0),
        app.job_source(),
        app.handlers,
        clock,
        LuckyDice(),
    )
    yield made
    made.slots.close()


def test_a_cancelled_sync_job_is_interrupted_and_its_thread_takes_the_next_one(app, clock, worker):
    begun, seen = threading.Event(), []

    @app.job(queue="mail")
    def long() -> None:
        begun.set()
        try:
            _work()
        except Exception:  # the work has not failed
            seen.append("an error")
        finally:
            seen.append(f"cleaned up, stopping={current().is_stopping}")

    @app.job(queue="mail")
    def short() -> None:
        _work(rounds=100)
        seen.append("short")

    sent = long.enqueue()
    following = short.enqueue()
    worker.step()
    assert begun.wait(PATIENCE_S)
    app.jobs.cancel(sent, reason="not needed")
    _notice(worker, clock)
    eventually(lambda: worker.pump.finished, within_s=PATIENCE_S)
    worker.step()
    eventually(lambda: worker.pump.finished, within_s=PATIENCE_S)
    worker.step()

    assert seen == ["cleaned up, stopping=True", "short"]
    assert app.jobs.get(sent).state is State.CANCELLED
    assert app.jobs.get(sent).reason == "not needed"
    assert app.jobs.get(following).state is State.DONE


def test_an_interrupted_job_leaves_no_traceback_in_the_log(app, clock, worker, caplog):
    begun = threading.Event()

    @app.job(queue="mail")
    def long() -> None:
        begun.set()
        _work()

    sent = long.enqueue()
    worker.step()
    assert begun.wait(PATIENCE_S)
    app.jobs.cancel(sent)
    _notice(worker, clock)
    eventually(lambda: worker.pump.finished, within_s=PATIENCE_S)
    worker.step()

    assert "stopped: it was cancelled, or its lease was lost" in caplog.text
    assert "job raised" not in caplog.text


def test_a_job_at_its_time_limit_is_interrupted_on_its_thread(app, clock, worker):
    begun, ended = threading.Event(), threading.Event()

    @app.job(queue="mail", timeout="10s")
    def long() -> None:
        begun.set()
        try:
            _work()
        finally:
            ended.set()

    sent = long.enqueue()
    worker.step()
    assert begun.wait(PATIENCE_S)
    clock.advance(seconds=10)
    worker.step()

    assert ended.wait(PATIENCE_S)
    assert app.jobs.get(sent).reason == "timed_out"


def test_a_job_that_was_cancelled_before_its_call_is_not_called():
    job = some_job(call=lambda: pytest.fail("it was called"), handler=AHandler())
    job.stop(StopReason.LEASE_LOST)

    run(job, cast(Any, NoHooks()), LuckyDice())


def test_an_interruption_never_reaches_what_the_thread_does_next():
    """Two threads play it thousands of times: one calls handlers, the other interrupts them."""
    jobs = [some_job(call=lambda: None, handler=AHandler()) for _ in range(5_000)]
    at = [0]
    is_over = threading.Event()

    def interrupt() -> None:
        while not is_over.is_set():
            job = jobs[at[0]]
            job.stop_reason = None
            job.stop(StopReason.LEASE_LOST)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        for number in range(len(jobs)):
            at[0] = number
            run(jobs[number], cast(Any, NoHooks()), LuckyDice())
            _work(rounds=3)  # would raise JobCancelled
    finally:
        is_over.set()
        thread.join(PATIENCE_S)


def test_a_cancelled_job_in_a_sandbox_is_killed_only_if_it_does_not_stop(app, clock, make_driver):
    done: list[str] = []

    @app.job(queue="mail", timeout="1h")
    def long() -> None: ...

    sent = [long.enqueue() for _ in range(2)]
    driver = make_driver(slots=2, has_sandbox=True)
    driver.turn()
    jobs = [driver.begin(), driver.begin()]
    for job in jobs:
        job.stop_handler = lambda: done.append("interrupted")
        job.force_stop = lambda: done.append("killed")
    for one in sent:
        app.jobs.cancel(one)
    clock.advance(ms=NOTICE_MS)
    driver.turn()
    assert done == ["interrupted"] * 2

    driver.end(jobs[0])
    clock.advance(ms=GRACE_MS)
    driver.turn()

    assert done == ["interrupted"] * 2 + ["killed"]


def _work(rounds: int | None = None) -> None:
    pause = threading.Event()
    while rounds is None or rounds > 0:
        pause.wait(0.001 if rounds is None else 0)
        rounds = rounds and rounds - 1


def _notice(worker: JobWorker, clock: ManualClock) -> None:
    clock.advance(ms=NOTICE_MS)
    worker.step()
