"""Days in the life of a real broker: a real store, its sampler and its archiver write the lake.

Most of its queues are not busy: idle, paused, stuck, brand-new and deleted ones, days without
messages, messages without kinds and tags, and a clock that jumps.  Others have registered workers,
of which one is lost, a route whose circuit opens, and a release that fails.
"""

from __future__ import annotations

from typing import Any

from penstock.domain.lake.layout import dt_of
from penstock.domain.limits import DAY, HOUR, MINUTE, Limits
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import Queue
from penstock.domain.worker import NewWorker
from penstock.outbound.dice import SystemDice
from penstock.services.workers import WorkerService
from penstock.store.maintenance.clock_mark import set_back
from tests.runtime.archiver.driver import ArchiverDriver
from tests.services.driver import HASH, PATTERN, CircuitDriver
from tests.store import flows
from tests.store.flows import a_member

ROUTE = "/shop/(.*)"
UNICODE = "größe-✓-日本"
MEGABYTE = 1024 * 1024
JUMP_DAYS = 400
POOL = ("bulk", "urgent")
RELEASE = "2.0"
FLOW = "two-steps"


class RealBroker:
    def __init__(self, driver: ArchiverDriver) -> None:
        self._driver = driver
        self._store = driver.store_driver
        self._workers = WorkerService(
            self._store.store, self._store.clock, SystemDice(), Limits(), valid_ms=HOUR
        )
        self._circuits = CircuitDriver(self._store)
        self.folder = driver.folder
        self.first_day = self.busy_day = self.quiet_day = self.last_day = dt_of(self._store.now)

    def play(self) -> None:
        self._first_day()
        self._busy_day()
        self._across_midnight()
        self._quiet_days()
        self._last_day()
        self._jump()

    def _first_day(self) -> None:
        self._queue("idle")
        paused, stuck = self._queue("paused"), self._queue("stuck")
        self._queue("dead-letters")
        failing = self._queue("failing", max_attempts=1, dead_letter_queue="dead-letters")
        single, labelled = self._queue("single"), self._queue("labelled")
        self._store.send_many(paused, 5)
        self._store.pause(paused)
        self._store.send(stuck)
        self._expire_leases(stuck, times=12)
        self._driver.finish(single)  # sent, claimed and done within a millisecond
        self._driver.finish(labelled, kind=UNICODE, tags=(UNICODE, "x"), route=ROUTE)
        self._driver.finish(labelled, body='"' + "x" * (MEGABYTE - 100) + '"')
        self._store.send_many(failing, 3, route=ROUTE)
        for message in self._store.claim(failing, 3, claimed_by=UNICODE):
            self._store.act(Verb.FAIL, message, text=f"no {UNICODE}")
        self._delete_and_create_again()
        self._sample()

    def _busy_day(self) -> None:
        """A pool of workers, one of which is lost; a failing release; a circuit; a wrong clock."""
        self._store.clock.advance(ms=DAY - self._store.now % DAY + 8 * HOUR)
        self.busy_day = dt_of(self._store.now)
        worker, silent = (self._register(name) for name in ("worker-1", "worker-2"))
        self._starve(worker)
        self._fail_kind(worker)
        self._open_circuit(worker)
        self._lose(silent, worker)
        self._set_clock_back(worker)
        self._run_flow(worker)
        self._sample()

    def _register(self, name: str) -> str:
        about = NewWorker(name=name, queues=POOL, labels={"release": RELEASE})
        return self._workers.register(about).result().id

    def _starve(self, worker: str) -> None:
        """A message of one queue waits while the worker works on those of the other."""
        bulk, urgent = (self._queue(name) for name in POOL)
        self._store.send(urgent, kind="alert")
        for _ in range(3):
            self._store.send(bulk, kind="export")
            [message] = self._store.claim(bulk, claimed_by=worker)
            self._store.clock.advance(ms=MINUTE)
            self._store.complete(message)
        self._work_off(urgent, worker)

    def _fail_kind(self, worker: str) -> None:
        refunds = self._queue("refunds", max_attempts=1)
        self._store.send_many(refunds, 2, kind="refund")
        for message in self._store.claim(refunds, 2, claimed_by=worker):
            self._store.act(Verb.FAIL, message, text="no account")

    def _open_circuit(self, worker: str) -> None:
        """Messages of its route wait until it closes."""
        payments = self._queue("payments")
        self._circuits.begin()
        self._store.send_many(payments, 2, route=PATTERN)
        self._circuits.fail(payments)
        self._store.clock.advance(ms=10 * MINUTE)
        self._circuits.circuits.close(HASH).result()
        self._circuits.circuits.release_next(now=self._store.now).result()
        self._work_off(payments, worker)

    def _lose(self, worker: str, busy: str) -> None:
        """The one misses its beats, and so its lease expires; the other does not."""
        queue = self._queue("abandoned")
        self._store.send(queue)
        self._store.claim(queue, claimed_by=worker, lease_ms=MINUTE)
        self._store.clock.advance(ms=30 * MINUTE)
        self._workers.beat(busy).result()
        self._store.clock.advance(ms=45 * MINUTE)
        self._workers.lose_overdue(now=self._store.now).result()
        self._driver.sampler.tick(self._store.now)
        self._work_off(queue, busy)

    def _set_clock_back(self, worker: str) -> None:
        """A message is claimed while the clock is hours ahead, and done after the correction."""
        queue = self._queue("ahead")
        right, mark = self._store.now, self._store.clock.advance(ms=2 * HOUR)
        self._store.send(queue)
        [message] = self._store.claim(queue, claimed_by=worker)
        self._store.clock.advance(ms=right - mark)
        self._store.write(lambda s: set_back(s, mark=mark, now=right, since=right))
        self._store.complete(message)

    def _run_flow(self, worker: str) -> None:
        queue = self._queue("flows")
        flows.create(
            self._store, a_member(queue, "first"), a_member(queue, "second", ("first",)), name=FLOW
        )
        for _ in range(2):
            self._work_off(queue, worker)

    def _work_off(self, queue: Queue, worker: str) -> None:
        messages = self._store.claim(queue, 100, claimed_by=worker)
        assert messages, queue.name
        for message in messages:
            self._store.complete(message)

    def _delete_and_create_again(self) -> None:
        deleted = self._queue("deleted")
        self._driver.finish(deleted, 3)
        self._sample()
        self._store.write(lambda s: s.queues.remove(deleted.queue_no, now=self._store.now))
        self._store.clock.advance(seconds=1)
        self._driver.finish(self._queue("deleted"), 2)

    def _across_midnight(self) -> None:
        night = self._queue("night")
        self._store.clock.advance(ms=DAY - self._store.now % DAY - 1)
        self._store.send(night)
        [message] = self._store.claim(night)
        self._store.clock.advance(ms=2)
        self._store.complete(message)
        self._sample()

    def _quiet_days(self) -> None:
        """One day with samples only, then two days on which the broker is off."""
        self._store.clock.advance(days=1)
        self.quiet_day = dt_of(self._store.now)
        self._sample()
        self._store.clock.advance(days=3)
        self._sample()

    def _last_day(self) -> None:
        self._store.clock.advance(hours=1)
        self.last_day = dt_of(self._store.now)
        brand_new = self._queue("brand-new")
        self._store.send(brand_new, delay_ms=HOUR)
        cancelled = self._queue("cancelled")
        self._store.send(cancelled)
        [message] = self._store.claim(cancelled)
        self._store.act(Verb.CANCEL, message)
        self._sample()

    def _jump(self) -> None:
        """The clock jumps forward between the sending of a message and its claim."""
        jumped = self._queue("jumped")
        self._store.send(jumped)
        self._store.clock.advance(days=JUMP_DAYS)
        for message in self._store.claim(jumped):
            self._store.complete(message)
        self._sample()

    def _expire_leases(self, queue: Queue, *, times: int) -> None:
        for _ in range(times):
            self._store.claim(queue, claimed_by="w-1", lease_ms=MINUTE)
            self._store.clock.advance(ms=2 * MINUTE)
            self._driver.sampler.tick(self._store.now)
        assert self._store.browse(queue, State.DEAD) == []

    def _queue(self, name: str, **settings: Any) -> Queue:
        return self._store.queue(name, **({"max_attempts": 100} | settings))

    def _sample(self) -> None:
        self._store.clock.advance(ms=MINUTE)
        self._driver.run()
