"""A whole worker in this process: real threads, a real loop, a real store."""

from __future__ import annotations

import asyncio
import threading

import pytest

from penstock import Penstock
from penstock.domain.limits import HOUR
from penstock.domain.message.lifecycle import State
from penstock.worker import lease_keeper as keeper
from penstock.worker import pump
from tests.support.waiting import eventually


@pytest.fixture
def app(timed_app: Penstock) -> Penstock:
    return timed_app


def test_a_thousand_short_jobs_of_both_colours_run_each_once(app, start):
    done: list[int] = []

    @app.job(queue="mail")
    def sync(n: int) -> None:
        done.append(n)

    @app.job(queue="mail")
    async def colourful(n: int) -> None:
        await asyncio.sleep(0)
        done.append(n)

    for first in range(0, 1_000, 100):
        job = colourful if first % 200 else sync
        job.enqueue_many([{"n": n} for n in range(first, first + 100)])
    start(slots=4)

    eventually(lambda: len(done) == 1_000, within_s=30)
    assert sorted(done) == list(range(1_000))


def test_never_more_jobs_run_at_a_time_than_there_are_slots(app, start):
    lock, running, most, done = threading.Lock(), [0], [0], []

    def count(change: int) -> None:
        with lock:
            running[0] += change
            most[0] = max(most[0], running[0])

    @app.job(queue="mail")
    def sync() -> None:
        count(1)
        threading.Event().wait(0.002)
        count(-1)
        done.append(1)

    @app.job(queue="mail")
    async def colourful() -> None:
        count(1)
        await asyncio.sleep(0.002)
        count(-1)
        done.append(1)

    for _ in range(20):
        sync.enqueue_many([{}] * 3)
        colourful.enqueue_many([{}] * 3)
    start(slots=3, prefetch=50)

    eventually(lambda: len(done) == 120, within_s=30)
    assert most[0] == 3


def test_a_job_that_comes_while_the_worker_sleeps_is_begun_at_once(app, start, monkeypatch):
    monkeypatch.setattr(pump, "_POLL_MS", HOUR)  # without a wake-up it would sleep for that long
    begun = []

    @app.job(queue="mail")
    def note() -> None:
        begun.append(1)

    start()
    for n in range(6):
        note.enqueue()
        eventually(lambda: len(begun) > n)  # noqa: B023


def test_jobs_that_are_done_are_reported_while_others_still_run(app, start):
    gate = threading.Event()

    @app.job(queue="mail")
    def quick() -> None: ...

    @app.job(queue="mail")
    def slow() -> None:
        gate.wait()

    quick_ids = [quick.enqueue().id for _ in range(5)]
    slow_ids = [slow.enqueue().id for _ in range(4)]
    start(slots=1, prefetch=20)
    try:
        messages = app._lazy_backend.get().broker.messages

        eventually(lambda: not any(messages.find(id).result() for id in quick_ids))
        assert all(messages.find(id).result() for id in slow_ids)
    finally:
        gate.set()


def test_a_worker_is_registered_while_it_runs(app, start):
    worker = start()
    workers = app._lazy_backend.get().broker.workers

    eventually(lambda: len(workers.all().result()) == 1)
    worker.drain()

    eventually(lambda: workers.all().result() == [])


def test_an_async_job_that_is_given_back_may_clean_up(app, start):
    begun, cleaned = threading.Event(), threading.Event()

    @app.job(queue="mail")
    async def long() -> None:
        begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            cleaned.set()

    sent = long.enqueue()
    worker = start()
    assert begun.wait(60)

    worker.drain(0)

    assert cleaned.wait(60)
    messages = app._lazy_backend.get().broker.messages
    eventually(lambda: messages.find(sent.id).result().state == "ready")


def test_a_running_async_job_that_is_cancelled_may_clean_up_and_gives_its_slot_to_the_next(
    app, start, monkeypatch
):
    monkeypatch.setattr(keeper, "NOTICE_MS", 50)
    began, cleaned, after = threading.Event(), threading.Event(), threading.Event()

    @app.job(queue="mail")
    async def long() -> None:
        began.set()
        try:
            await asyncio.sleep(3_600)
        finally:
            cleaned.set()

    @app.job(queue="mail")
    def following() -> None:
        after.set()

    sent = long.enqueue()
    start(slots=1)
    assert began.wait(30)
    following.enqueue()

    app.backend.broker.messages.cancel(sent.id, reason="no", is_running_ok=True).result()

    assert cleaned.wait(30)
    assert after.wait(30)
    [ending] = app.backend.broker.history.past(sent.id).result().endings
    assert (ending.outcome, ending.reason) == (State.CANCELLED, "no")
