"""How a worker ends when the store is out of reach."""

from __future__ import annotations

import threading

import pytest

from penstock import Penstock
from penstock.domain.errors import StoreUnavailable
from penstock.worker.assignment import Order
from penstock.worker.worker import LAST_WORDS_MS, Worker
from tests.clocks import ManualClock
from tests.support.waiting import eventually
from tests.worker.driver import Interruptible, LuckyDice


@pytest.mark.parametrize("backend", ["sqlite"])
def test_a_worker_whose_last_words_nobody_hears_ends_all_the_same(
    app: Penstock, clock: ManualClock
) -> None:
    may_end = threading.Event()

    @app.job(queue="mail")
    def slow() -> None:
        may_end.wait(10)

    slow.enqueue()
    source = Interruptible(app.work_source())
    worker = Worker(Order(queues=("mail",), slots=1), source, app.handlers, clock, LuckyDice())
    worker.turn()
    assert worker.pump.holds_any

    source.error = StoreUnavailable("gone")
    worker.drain(1_000)
    worker.turn()
    may_end.set()
    eventually(lambda: bool(worker.pump.finished))
    clock.advance(ms=1_000)
    worker.turn()
    assert not worker.is_over  # the store may come back

    clock.advance(ms=LAST_WORDS_MS)
    worker.turn()
    assert worker.is_over
    worker.slots.close()
