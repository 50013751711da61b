"""A worker: the pump on the thread that calls `run`, slots for the jobs, signs of life.

    worker = Worker(Order(queues=("mail",)), source, handlers, clock, dice)
    worker.run()  # until worker.drain() is called, from any thread

Made of threads only; what needs processes is given from outside (`Sandboxes`, `Table`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress

from penstock.domain.limits import DAY
from penstock.ports.clock import Clock, Dice
from penstock.ports.work import Handlers, WorkAct, WorkSource
from penstock.worker.assignment import Order
from penstock.worker.async_slots import EventLoop
from penstock.worker.handling import failed
from penstock.worker.job_table import Table
from penstock.worker.lifespan import Lifespan, WorkerHooks
from penstock.worker.outage import Outage, Report, log_outage
from penstock.worker.pump import Pump
from penstock.worker.registration import Beats, WorkerRegistry
from penstock.worker.retirement import has_limits, reason_to_retire, resident_bytes
from penstock.worker.running_job import Held, Way
from penstock.worker.sandboxes import Sandboxes
from penstock.worker.slots import Slots

_log = logging.getLogger("penstock.worker")

LAST_WORDS_MS = 10_000  # so long a store may be out of reach when all else is over
_GATHER_S = 0.005  # so long, at most, short jobs wait for others to be told of together
_GATHER = 200
_NO_HURRY_MS = 366 * DAY  # a process that is replaced lets its jobs finish


class Worker:
    def __init__(
        self,
        order: Order,
        source: WorkSource,
        handlers: Handlers,
        clock: Clock,
        dice: Dice,
        *,
        registry: WorkerRegistry | None = None,
        sandboxes: Sandboxes | None = None,
        table: Table | None = None,
        on_dry: Callable[[bool], None] | None = None,
        on_outage: Report = log_outage,
        hooks: WorkerHooks | None = None,
        crash: Callable[[], None] | None = None,
    ) -> None:
        """`on_dry`: in a burst, called when it runs out of work; it ends after `finish` only.

        `crash` ends the process, for one that has a supervisor.
        """
        outage = Outage(on_outage)
        self._order = order
        self._source = source
        self._handlers = handlers
        self._clock = clock
        self._dice = dice
        self._sandboxes = sandboxes
        self._table = table or Table.create(order.places)
        self._loop = EventLoop(
            self._run_async,
            finished=self._finished,
            next_one=lambda: self.slots.next_for(is_loop=True),
            on_failure=self._loop_failed,
        )
        self._lifespan = Lifespan(hooks or WorkerHooks(), self._loop)
        self._crash = crash
        self.slots = Slots(order.slots, run=self._run, to_loop=self._loop.start)
        self.pump = Pump(
            order,
            source,
            handlers,
            clock,
            dice,
            slots=self.slots,
            table=self._table,
            has_sandbox=sandboxes is not None,
            wake=self._wake,
            on_ended=self._retire_if_due,
            outage=outage,
        )
        self._beats: Beats | None = None
        if registry is not None:
            self._beats = Beats(
                registry,
                every_ms=order.beat_ms,
                on_id=self._registered,
                on_drain=self.drain,
                outage=outage,
            )
        self.is_retired = False  # it ends to be replaced by another process
        self._on_dry = on_dry
        self._is_dry = False
        self._is_finishing = on_dry is None
        self._drain_ms: int | None = None  # asked for
        self._drain_until: int | None = None  # under way
        self._is_out_of_patience = False
        self._bell = threading.Lock()
        self._bell.acquire()
        self._is_rung = False
        self._is_asleep = False
        self._is_deep = False  # asleep until something happens, whatever it is

    def drain(self, within_ms: int | None = None) -> None:
        """End: claim no more, finish what runs within that time, give the rest back.

        From any thread, or a signal's handler; the shortest time said counts.
        """
        self.is_retired = False
        self._drain_within(self._order.drain_ms if within_ms is None else within_ms)

    def finish(self) -> None:
        """End a burst as soon as there is no work.  From any thread."""
        self._is_finishing = True
        self._wake()

    def start(self) -> None:
        """Run the application's start hooks, before anything is claimed; raises StartFailed."""
        try:
            self._lifespan.start()
        except BaseException:
            self._loop.close()
            raise

    def run(self) -> bool:
        """Until drained; tells whether all that ran has ended by itself.  Raises StartFailed."""
        self.start()
        end_listening = self._listen()
        try:
            while True:
                ms = self.turn()
                if self.is_over:
                    break
                self._wait(ms)
        finally:
            end_listening()
        return self._close()

    def turn(self) -> int:
        """Do what is due; tells in how many milliseconds there is more to do."""
        self._is_rung = False
        now = self._clock.now()
        dues = []
        if self._beats is not None:
            dues.append(self._beats.tick(now))
        if self._drain_ms is not None:
            dues.append(self._go_on_draining(now))
        dues.append(self.pump.tick(now))
        if self._order.is_burst and self._drain_ms is None:
            self._end_burst()
        return min(dues) - now

    @property
    def is_over(self) -> bool:
        return self.pump.is_draining and (self.pump.is_empty or self._is_out_of_patience)

    def _retire_if_due(self) -> None:
        """Jobs have ended: has this process run enough?"""
        if self._drain_ms is not None or not has_limits(self._order):
            return
        reason = reason_to_retire(self._order, jobs=self.pump.ended, memory_bytes=resident_bytes())
        if reason is not None:
            _log.info("replacing this process: %s", reason)
            self.is_retired = self.pump.is_draining = True
            self._drain_within(_NO_HURRY_MS)

    def _end_burst(self) -> None:
        if self.pump.is_dry is not self._is_dry:
            self._is_dry = self.pump.is_dry
            if self._on_dry is not None:
                self._on_dry(self._is_dry)
        if self._is_dry and self._is_finishing:
            self._drain_within(0)

    def _drain_within(self, within_ms: int) -> None:
        if self._drain_ms is None or within_ms < self._drain_ms:
            self._drain_ms = within_ms
            self._wake()

    def _go_on_draining(self, now: int) -> int:
        until = now + (self._drain_ms or 0)
        if self._drain_until is None:
            self._drain_until = until
            self.pump.drain()
        self._drain_until = min(self._drain_until, until)
        if now < self._drain_until:
            return self._drain_until
        self.pump.give_back()
        # A store that does not answer must not keep us for ever: leases run out by themselves.
        self._is_out_of_patience = now >= self._drain_until + LAST_WORDS_MS
        return self._drain_until + LAST_WORDS_MS

    def _close(self) -> bool:
        is_clean = not self.pump.holds_any
        if self._beats is not None:
            self._beats.leave()
        self._lifespan.stop()
        if self._sandboxes is not None:
            self._sandboxes.close()
        self.slots.close()
        self._loop.close()
        self._loop.join()
        if is_clean:
            self.slots.join()
        return is_clean

    # ---- waiting and waking

    def _wait(self, ms: int) -> None:
        if ms <= 0 or self._is_rung:
            return
        if self.slots.line:
            # Short jobs: let some gather.  Who empties the line, or has many, wakes us.
            self._sleep(min(ms / 1000, _GATHER_S))
            if self.pump.finished or self._is_rung:
                return
        self._is_deep = True
        if not self.pump.finished:
            self._sleep(ms / 1000)
        self._is_deep = False

    def _sleep(self, seconds: float) -> None:
        self._is_asleep = True
        if not self._is_rung:
            self._bell.acquire(timeout=seconds)
        self._is_asleep = False

    def _wake(self) -> None:
        self._is_rung = True
        if self._is_asleep:
            self._is_asleep = False
            with suppress(RuntimeError):  # somebody else has rung
                self._bell.release()

    def _listen(self) -> Callable[[], None]:
        """Not in a burst: a server announces work by leasing it, also when the burst is over."""
        if self._order.is_burst:
            return lambda: None
        return self._source.listen(self._order.queues, self._heard)

    def _heard(self) -> None:
        self.pump.is_woken = True
        self._wake()

    def _registered(self, worker_id: str) -> None:
        self.pump.worker_id = worker_id
        self._table.sign(worker_id)

    # ---- in the slots

    def _run(self, held: Held) -> None:
        """On a slot's thread, which survives whatever happens."""
        act: WorkAct | None = None
        try:
            if held.way is Way.SANDBOX and self._sandboxes is not None:
                act = self._run_apart(held, self._sandboxes)
            elif self._begin(held):
                act = held.ready.run(
                    self._handlers,
                    held,
                    self._dice,
                    lambda result: self._loop.wait_for(held, result),
                )
        except BaseException as error:
            act = failed(held.work, error)
        self._finished(held, act)

    def _run_apart(self, held: Held, sandboxes: Sandboxes) -> WorkAct | None:
        held.has_slot = True
        return sandboxes.run(held, self._begin)

    async def _run_async(self, held: Held) -> WorkAct | None:
        if not self._begin(held):
            return None
        return await held.ready.run_async(self._handlers, held, self._dice)

    def _loop_failed(self, error: BaseException, running: list[Held]) -> None:
        """One of the jobs on the event loop has broken it; all others are innocent."""
        named = ", ".join(f"{held.work.kind} {held.work.id}" for held in running)
        _log.critical("the event loop failed; jobs on it: %s", named or "none", exc_info=error)
        if self._crash is not None:
            self._table.acquit_all_but(held.place for held in running)
            self._crash()
        for held in running:
            self._finished(held, failed(held.work, error))
            following = self.slots.next_for(is_loop=True)
            if following is not None:
                self._loop.start(following)

    def _begin(self, held: Held) -> bool:
        now = self._clock.now()
        if not held.begin(now):
            return False
        is_apart = held.way is Way.SANDBOX
        self._table.begin(held.place, now=now, deadline=held.deadline, is_apart=is_apart)
        if held.is_late_start:
            self.pump.told(held)
        elif held.timeout_ms is not None:
            self._wake()  # there is a deadline now
        return True

    def _finished(self, held: Held, act: WorkAct | None) -> None:
        self._table.end(held.place)
        finished = self.pump.finished
        finished.append((held, act))
        if self._is_deep or not self.slots.line or len(finished) >= _GATHER:
            self._wake()
