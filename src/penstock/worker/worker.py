"""A worker: the pump on the thread that calls `run`, slots for the jobs, beats.

    worker = JobWorker(Assignment(queues=("mail",)), source, handlers, clock, dice)
    worker.run()  # until worker.drain() is called, from any thread

It has threads only; parts that need processes are passed in (`Sandboxes`, `JobTable`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Unpack

from penstock.domain.limits import DAY
from penstock.ports.clock import Clock, Dice
from penstock.wiring.broker import own_dice
from penstock.worker.application import Application, Handlers, JobSource, WorkerRegistry
from penstock.worker.assignment import Assignment, WorkerOptions, assignment_of
from penstock.worker.attempt_log import capture_logs
from penstock.worker.beats import Beats, describe_worker
from penstock.worker.chunk import Chunk
from penstock.worker.claimed_job import ClaimedJob, JobAct, RunsIn
from penstock.worker.handling import fail, run, run_async
from penstock.worker.log import OutageReporter, Report, log_outage
from penstock.worker.processes.job_table import JobTable
from penstock.worker.processes.process_exit import has_limits, reason_to_retire, resident_bytes
from penstock.worker.processes.startup import unknown_queues
from penstock.worker.pump import Pump
from penstock.worker.slots.async_slots import EventLoop
from penstock.worker.slots.lifespan import Lifespan, WorkerHooks
from penstock.worker.slots.sandboxes import Sandboxes
from penstock.worker.slots.slots import Slots

_log = logging.getLogger("penstock.worker")

FINAL_REPORT_MS = 10_000  # how long to wait for the store once all jobs have ended
_GATHER_S = 0.005  # how long, at most, ended jobs wait to be reported together
_GATHER = 200
_UNLIMITED_MS = 366 * DAY  # a process that is replaced lets its jobs finish


class JobWorker:
    def __init__(
        self,
        assignment: Assignment,
        source: JobSource,
        handlers: Handlers,
        clock: Clock,
        dice: Dice,
        *,
        registry: WorkerRegistry | None = None,
        sandboxes: Sandboxes | None = None,
        table: JobTable | None = None,
        on_dry: Callable[[bool], None] | None = None,
        on_outage: Report = log_outage,
        hooks: WorkerHooks | None = None,
        crash: Callable[[], None] | None = None,
    ) -> None:
        """`on_dry`: in a burst, called when it runs out of jobs; it ends only after `finish`.

        `crash` ends the process, if it has a supervisor.
        """
        outage = OutageReporter(on_outage)
        self._assignment = assignment
        self._source = source
        self._handlers = handlers
        self._clock = clock
        self._dice = dice
        self._sandboxes = sandboxes
        self._table = table or JobTable.create(assignment.places)
        self._loop = EventLoop(
            self._run_async,
            finished=self._on_finished,
            next_one=lambda: self.slots.next_for(is_loop=True),
            on_failure=self._loop_failed,
        )
        self._lifespan = Lifespan(hooks or WorkerHooks(), self._loop)
        self._crash = crash
        self.slots = Slots(assignment.slots, run=self._run, to_loop=self._loop.start)
        self.pump = Pump(
            assignment,
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
                every_ms=assignment.beat_ms,
                on_id=self._on_registered,
                on_drain=self.drain,
                outage=outage,
            )
        self.is_retired = False  # it ends because another process replaces it
        self._on_dry = on_dry
        self._is_dry = False
        self._is_finishing = on_dry is None
        self._drain_ms: int | None = None  # the drain time that was requested
        self._drain_until: int | None = None  # once the drain has begun
        self._is_out_of_patience = False
        self._wakeup = threading.Lock()
        self._wakeup.acquire()
        self._is_rung = False
        self._is_asleep = False
        self._wakes_for_any = False  # each ended job wakes it

    def drain(self, within_ms: int | None = None) -> None:
        """Claim nothing more, finish running jobs within this time, and give the others back.

        Callable from any thread or signal handler; of several calls the shortest time counts.
        """
        self.is_retired = False
        self._drain_within(self._assignment.drain_ms if within_ms is None else within_ms)

    def finish(self) -> None:
        """End a burst as soon as there are no jobs.  Callable from any thread."""
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
        """Run until drained; returns whether every job ended by itself.  Raises StartFailed."""
        self.start()
        end_listening = self._listen()
        try:
            while True:
                ms = self.step()
                if self.is_over:
                    break
                self._wait(ms)
        finally:
            end_listening()
        return self._close()

    def step(self) -> int:
        """Do what is due; returns the milliseconds until there is more to do."""
        self._is_rung = False
        now = self._clock.now()
        dues = []
        if self._beats is not None:
            dues.append(self._beats.tick(now))
        if self._drain_ms is not None:
            dues.append(self._continue_draining(now))
        dues.append(self.pump.tick(now))
        if self._assignment.is_burst and self._drain_ms is None:
            self._end_burst()
        return min(dues) - now

    @property
    def is_over(self) -> bool:
        return self.pump.is_draining and (self.pump.is_empty or self._is_out_of_patience)

    def _retire_if_due(self) -> None:
        """After jobs have ended, check whether this process has reached a limit."""
        if self._drain_ms is not None or not has_limits(self._assignment):
            return
        reason = reason_to_retire(
            self._assignment, jobs=self.pump.ended, memory_bytes=resident_bytes()
        )
        if reason is not None:
            _log.info("replacing this process: %s", reason)
            self.is_retired = self.pump.is_draining = True
            self._drain_within(_UNLIMITED_MS)

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

    def _continue_draining(self, now: int) -> int:
        until = now + (self._drain_ms or 0)
        if self._drain_until is None:
            self._drain_until = until
            self.pump.drain()
        self._drain_until = min(self._drain_until, until)
        if now < self._drain_until:
            return self._drain_until
        self.pump.give_back()
        # Do not wait for ever for a store that does not answer: leases expire by themselves.
        self._is_out_of_patience = now >= self._drain_until + FINAL_REPORT_MS
        return self._drain_until + FINAL_REPORT_MS

    def _close(self) -> bool:
        is_clean = not self.pump.has_jobs
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
        if self.slots.waiting:
            # Short jobs: let some gather.  The last waiting job, or many ended ones, wake it.
            self._sleep(min(ms / 1000, _GATHER_S))
            if self.pump.finished or self._is_rung:
                return
        self._wakes_for_any = True
        if not self.pump.finished:
            self._sleep(ms / 1000)
        self._wakes_for_any = False

    def _sleep(self, seconds: float) -> None:
        self._is_asleep = True
        if not self._is_rung:
            self._wakeup.acquire(timeout=seconds)
        self._is_asleep = False

    def _wake(self) -> None:
        self._is_rung = True
        if self._is_asleep:
            self._is_asleep = False
            with suppress(RuntimeError):  # another thread has woken it already
                self._wakeup.release()

    def _listen(self) -> Callable[[], None]:
        """Not in a burst: a server announces jobs by leasing them, even after the burst is over."""
        if self._assignment.is_burst:
            return lambda: None
        return self._source.listen(self._assignment.queues, self._wake_up)

    def _wake_up(self) -> None:
        self.pump.is_woken = True
        self._wake()

    def _on_registered(self, worker_id: str) -> None:
        self.pump.worker_id = worker_id
        self._table.set_worker(worker_id)

    # ---- in the slots

    def _run(self, job: ClaimedJob) -> None:
        """On a slot's thread, which survives every exception."""
        act: JobAct | None = None
        try:
            if job.runs_in is RunsIn.SANDBOX and self._sandboxes is not None:
                job.take_slot()
                act = self._sandboxes.run(job, self._begin)
            elif self._begin(job):
                act = run(
                    job,
                    self._handlers,
                    self._dice,
                    lambda result: self._loop.wait_for(job, result),
                )
        except BaseException as error:
            act = fail(job, error)
        self._on_finished(job, act)

    async def _run_async(self, job: ClaimedJob) -> JobAct | None:
        if not self._begin(job):
            return None
        return await run_async(job, self._handlers, self._dice)

    def _loop_failed(self, error: BaseException, running: list[ClaimedJob]) -> None:
        """Handle a broken event loop: one of its jobs is to blame, jobs elsewhere are not."""
        named = ", ".join(f"{job.kind} {job.id}" for job in running)
        _log.critical("the event loop failed; jobs on it: %s", named or "none", exc_info=error)
        if self._crash is not None:
            suspects = [member for job in running for member in job.members or (job,)]
            self._table.clear_all_but(job.place for job in suspects)
            self._crash()
        for job in running:
            self._on_finished(job, fail(job, error))
            following = self.slots.next_for(is_loop=True)
            if following is not None:
                self._loop.start(following)

    def _begin(self, job: ClaimedJob) -> bool:
        now = self._clock.now()
        if not job.begin(now):
            return False
        if isinstance(job, Chunk):
            for member in job.left:
                self._note_begin(member, now)
        else:
            self._note_begin(job, now)
        return True

    def _note_begin(self, job: ClaimedJob, now: int) -> None:
        is_sandboxed = job.runs_in is RunsIn.SANDBOX
        self._table.begin(job.place, now=now, deadline=job.deadline, is_sandboxed=is_sandboxed)
        if job.is_late_start:
            self.pump.note_extension(job)
        elif job.time_limit_ms is not None:
            self._wake()  # there is a deadline now

    def _on_finished(self, job: ClaimedJob, act: JobAct | None) -> None:
        if isinstance(job, Chunk):
            for member in job.members:
                self._table.end(member.place)
        else:
            self._table.end(job.place)
        finished = self.pump.finished
        finished.append((job, act))
        if self._wakes_for_any or not self.slots.waiting or len(finished) >= _GATHER:
            self._wake()


def in_process(app: Application, **options: Unpack[WorkerOptions]) -> JobWorker:
    """Create a worker in this process, without supervisor or sandboxes; see `Penstock.worker`."""
    assignment = assignment_of(options).with_queues(app.worker_queues)
    for text in unknown_queues(app, assignment.queues):
        _log.warning("%s", text)
    capture_logs(app)
    handlers = app.job_handlers
    about = describe_worker(assignment, handlers.kinds, options.get("name"))
    return JobWorker(
        assignment,
        app.job_source(),
        handlers,
        app.clock,
        own_dice(),
        registry=app.registry(about) if options.get("is_registered", True) else None,
        hooks=handlers.worker_hooks,
    )
