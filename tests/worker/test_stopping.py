"""How a worker shuts down when the store is unavailable."""

from __future__ import annotations

import threading

import pytest

from penstock import Penstock
from penstock.domain.errors import StoreUnavailable
from penstock.worker.assignment import Assignment
from penstock.worker.worker import FINAL_REPORT_MS, JobWorker
from tests.clocks import ManualClock
from tests.support.waiting import eventually
from tests.worker.driver import Interruptible, LuckyDice


@pytest.mark.parametrize("backend", ["sqlite"])
def test_a_worker_that_cannot_report_its_exit_still_exits(
    app: Penstock, clock: ManualClock
) -> None:
    may_end = threading.Event()

    @app.job(queue="mail")
    def slow() -> None:
        may_end.wait(10)

    slow.enqueue()
    source = Interruptible(app.job_source())
    worker = JobWorker(
        Assignment(queues=("mail",), slots=1), source, app.handlers, clock, LuckyDice()
    )
    worker.step()
    assert worker.pump.has_jobs

    source.error = StoreUnavailable("gone")
    worker.drain(1_000)
    worker.step()
    may_end.set()
    eventually(lambda: bool(worker.pump.finished))
    clock.advance(ms=1_000)
    worker.step()
    assert not worker.is_over  # the store may come back

    clock.advance(ms=FINAL_REPORT_MS)
    worker.step()
    assert worker.is_over
    worker.slots.close()
