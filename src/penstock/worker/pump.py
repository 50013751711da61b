"""The pump: one thread that claims jobs, hands them to slots and reports how they ended.

A step collects finished jobs from the slots, reports them and claims as many as there is room for,
all in one transaction, and hands out the claimed jobs.  It also extends leases and checks time
limits.  `tick` does all of it; nothing here waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from penstock.domain.errors import LeaseLost, PenstockError
from penstock.ports.clock import Clock, Dice
from penstock.worker.application import Handlers, JobSource
from penstock.worker.assignment import Assignment, Prefetch
from penstock.worker.attempt_log import LogSender
from penstock.worker.chunk import Chunk
from penstock.worker.chunk_gatherer import ChunkGatherer
from penstock.worker.circuit_gate import CircuitGate
from penstock.worker.claimed_job import ClaimedJob, JobAct, RunsIn, StopReason
from penstock.worker.handling import prepare
from penstock.worker.log import JobLog, OutageReporter
from penstock.worker.outcomes import fail, release
from penstock.worker.processes.job_table import JobTable
from penstock.worker.reports import Report, Reports
from penstock.worker.running_jobs import RunningJobs
from penstock.worker.slots.slots import Slots

_POLL_MS = 1_000  # between claims without a wake-up
_BURST_POLL_MS = 200  # in a burst there are no wake-ups
_AFTER_ERROR_MS = (200, 10_000)
_MAX_PER_CLAIM = 500
_LARGE_CHARS = 512 * 1024  # all bodies: the claim may have been cut short by the size limit
_CLAIMS = "claims"
_CANCELLED = "it was cancelled, but not by the worker"


class Pump:
    """`tick` and `drain` belong to one thread; other threads record events and wake it."""

    def __init__(
        self,
        assignment: Assignment,
        source: JobSource,
        handlers: Handlers,
        clock: Clock,
        dice: Dice,
        *,
        slots: Slots,
        table: JobTable,
        has_sandbox: bool = False,
        wake: Callable[[], None] = lambda: None,
        on_ended: Callable[[], None] = lambda: None,
        outage: OutageReporter | None = None,
    ) -> None:
        """`on_ended`: called when jobs have ended, before more are claimed."""
        self.worker_id = "unregistered"
        self.is_draining = False
        self.is_woken = True  # there may be jobs to claim
        self.ended = 0  # number of jobs that ran in this process
        self.finished: deque[tuple[ClaimedJob, JobAct | None]] = deque()
        self._assignment = assignment
        self._source = source
        self._handlers = handlers
        self._clock = clock
        self._slots = slots
        self._wake = wake
        self._on_ended = on_ended
        self._outage = outage or OutageReporter()
        self._jobs = RunningJobs(table, clock, assignment.lease_ms, has_sandbox=has_sandbox)
        self._prefetch = Prefetch()
        self._log = JobLog()
        self._gate = CircuitGate(source)
        self._reports = Reports(
            self._jobs, self._gate, self._log, clock, dice, lease_ms=assignment.lease_ms
        )
        self._logs = LogSender(source.keep_logs)
        self._in_a_row = handlers.chunk_queues
        self._chunks = ChunkGatherer(assignment.slots, in_order=self._in_a_row)
        self._poll_ms = _BURST_POLL_MS if assignment.is_burst else _POLL_MS
        self._poll_at = 0
        self._found_nothing = False  # by the last claim
        self._errors = 0  # consecutive
        self._resume_at = 0

    @property
    def is_empty(self) -> bool:
        """Whether no job is left and every end was reported."""
        left = (j for j in self._jobs.all if j.stop_reason is not StopReason.GIVEN_BACK)
        return not self._reports.unsent and not self.finished and next(left, None) is None

    @property
    def has_jobs(self) -> bool:
        """Whether any job is left, including jobs that were given back but still run."""
        return bool(self._jobs)

    @property
    def is_dry(self) -> bool:
        """Whether no job is left and the last claim found none."""
        return self._found_nothing and not (self._jobs or self.is_woken) and self.is_empty

    def tick(self, now: int) -> int:
        """Do one step; returns when the next one is due if nothing wakes the pump before."""
        self._stop_overdue(now)
        self._give_up_unstarted(now)
        self._gather(now)
        self._jobs.force_stubborn(now)
        self._start_chunks(now)
        if self._errors and now < self._resume_at:
            return self._resume_at
        extensions = self._reports.extensions(now)
        is_claim_due = self.is_woken or self._reports.unsent or now >= self._poll_at
        room = self._room if is_claim_due else 0
        if self._reports.unsent or extensions or room or self._logs.next_at <= now:
            self._exchange(extensions, room, now)
        return self._next_at(now)

    def extend(self, job: ClaimedJob, lease_ms: int | None, progress: str | None) -> None:
        """Extend with the next step, so that a handler may call it as often as it likes."""
        if job.stop_reason is StopReason.LEASE_LOST:
            raise LeaseLost(job.id)
        if lease_ms is not None:
            # The keeper extends at a third of the worker's lease, too late for a shorter lease.
            job.lease_ms = max(lease_ms, job.lease_ms)
        if progress is not None:
            job.progress = progress
        self.note_extension(job)

    def note_extension(self, job: ClaimedJob) -> None:
        """Extend the job's lease with the next step; callable from any thread."""
        self._reports.request_extension(job)
        self._wake()

    def drain(self) -> None:
        """Claim nothing more, give back what has not begun, ask running jobs to stop."""
        self.is_draining = True
        for job in [*self._slots.take_back(), *self._chunks.take_back()]:
            if isinstance(job, Chunk):
                self._end_chunk(job, None)
            else:
                self._end(job, release(job))
        for job in self._jobs.all:
            job.ask_to_stop()

    def give_back(self) -> None:
        """Stop the running jobs when the drain time is over; they run again and lose no attempt."""
        for job in list(self._jobs.all):
            if job.stop_reason is None:
                job.stop(StopReason.GIVEN_BACK)
                self._reports.end(job, release(job))
            elif job.stop_reason is not StopReason.GIVEN_BACK:  # it was stopped, but still runs
                if job.owes_timeout:
                    self._reports.time_out(job)
                job.stop_reason = StopReason.GIVEN_BACK

    def _stop_overdue(self, now: int) -> None:
        for job in list(self._jobs.timed):
            if job.stop_reason is None and job.deadline is not None and job.deadline <= now:
                job.stop(StopReason.TIMED_OUT)
                if job.runs_in is RunsIn.THREAD:  # it may not stop: reported at once
                    self._reports.time_out(job)

    def _give_up_unstarted(self, now: int) -> None:
        """Give back jobs that wait too long for a slot or a sandbox; they lose no attempt."""
        for job in list(self._jobs.timed):
            start_by = job.start_by
            if start_by is None or start_by > now or not job.give_up():
                continue
            if self._chunks.remove(job):
                self._end(job, release(job))
                continue
            try:
                self._slots.waiting.remove(job)
            except ValueError:  # it waits in a chunk, or has a slot without a sandbox
                self._reports.end(job, release(job))
                if job.stop_handler is not None:
                    job.stop_handler()
            else:
                self._end(job, release(job))

    def _gather(self, now: int) -> None:
        """Collect finished jobs from the slots."""
        count = 0
        while self.finished:
            job, act = self.finished.popleft()
            count += 1
            if job.started_at and job.runs_in is not RunsIn.SANDBOX:
                self.ended += len(job.members) or 1
            if job.stop_reason is None and not job.members:  # most jobs
                self._end(job, act or fail(job, _CANCELLED))
            elif isinstance(job, Chunk):
                self._end_chunk(job, act or fail(job, _CANCELLED))
            else:
                self._finish(job, act)
        self._prefetch.note(count, now=now)
        if count:
            self._on_ended()

    def _finish(self, job: ClaimedJob, act: JobAct | None) -> None:
        if job.stop_reason is None:
            self._end(job, act or fail(job, _CANCELLED))
        elif job.owes_timeout:
            self._reports.time_out(job)
            self._jobs.remove(job)
        else:
            self._forget(job)

    def _end_chunk(self, chunk: Chunk, act: JobAct | None) -> None:
        """Without an act it has not begun: its jobs are given back."""
        ends = chunk.ends(act)
        for job, own in ends:
            self._finish(job, own or release(job))
        for job in self._chunks.end(chunk, [own for _, own in ends]):
            self._end(job, release(job))

    def _start_chunks(self, now: int) -> None:
        if self._chunks.next_at <= now:
            self._slots.give(self._chunks.due(now))
        elif self._found_nothing and self._assignment.is_burst:
            self._slots.give(self._chunks.flush())

    def _end(self, job: ClaimedJob, act: JobAct) -> None:
        self._reports.end(job, act)
        self._jobs.remove(job)

    def _forget(self, job: ClaimedJob) -> None:
        """Forget a job whose end was reported already, or must not be."""
        if self._jobs.remove(job):
            self._gate.lose(job)
            self._jobs.free(job)

    @property
    def _room(self) -> int:
        """How many more jobs may be claimed."""
        if self.is_draining:
            return 0
        assignment, count = self._assignment, len(self._jobs)
        ahead = self._prefetch.ahead if assignment.prefetch is None else assignment.prefetch
        room = assignment.slots + ahead - count + self._chunks.spared
        if room > 0:
            room = min(max(room, self._chunks.appetite), self._jobs.free_places)
        if assignment.max_jobs is not None:
            room = min(room, assignment.max_jobs - self.ended - count)
        return max(min(room, _MAX_PER_CLAIM), 0)

    def _exchange(self, extensions: list[Report], room: int, now: int) -> None:
        """Report and claim, in one transaction."""
        reports = self._reports.take(extensions)
        acts = [act for _, act in reports]
        self.is_woken = False  # cleared before the store is asked, so that no wake-up is lost
        try:
            self._logs.send(now)
            if room:
                jobs, answers = self._source.claim(
                    self._assignment.queues,
                    limit=room,
                    lease_ms=self._assignment.lease_ms,
                    worker_id=self.worker_id,
                    finishing=acts,
                    in_a_row=self._in_a_row,
                )
            else:
                jobs, answers = [], self._source.act(acts) if acts else []
        except (PenstockError, OSError) as error:
            self._reports.send_again(reports)
            self._back_off(error, now)
            return
        if room:
            self._poll_at = now + self._poll_ms
            # A claim with acts may return nothing because a queue could not be reached.
            self._found_nothing = not jobs and not acts
            is_unsure = self._assignment.is_burst and not jobs and bool(acts)
            is_full = len(jobs) == room or sum(len(job.body) for job in jobs) > _LARGE_CHARS
            self.is_woken = self.is_woken or is_unsure or is_full
        unanswered = self._reports.take_answers(reports, answers, now)
        if unanswered is not None:
            self._back_off(unanswered, now)
        else:
            self._errors = 0
            self._outage.end(_CLAIMS)
        self._gate.report()
        if jobs:
            self._take(jobs, now)

    def _back_off(self, error: Exception, now: int) -> None:
        """Wait after an unanswered request; unsent reports are sent later."""
        first, most = _AFTER_ERROR_MS
        pause_ms = min(first << min(self._errors, 10), most)
        self._outage.begin(_CLAIMS, error)
        self._errors += 1
        self._resume_at = now + pause_ms

    def _take(self, jobs: Iterable[ClaimedJob], now: int) -> None:
        runnable: list[ClaimedJob] = []
        has_routes = False
        for job in jobs:
            act = prepare(self._handlers, job, self._clock)
            if act is None:
                runnable.append(job)
                has_routes = has_routes or job.route is not None
            else:
                self._log.log_parked(job, act)
                self._reports.end_unstarted(act)
        if has_routes:
            runnable, rejected = self._gate.admit(runnable, now)
            for act in rejected:
                self._reports.end_unstarted(act)
        for job in runnable:
            self._jobs.add(job, now)
            job.on_extend = self.extend
        self._logs.watch(runnable, now)
        self._slots.give(self._chunks.sort(runnable))

    def _next_at(self, now: int) -> int:
        if self._errors:
            return self._resume_at
        if self._reports.unsent or self.finished:
            return now
        dues = [self._reports.next_at] if self._jobs else []
        dues += self._chunks.next_at, self._jobs.force_at, self._logs.next_at
        if self._room:
            dues.append(now if self.is_woken else self._poll_at)
        for job in self._jobs.timed:
            due_at = job.deadline or job.start_by
            if due_at is not None and job.stop_reason is None:
                dues.append(due_at)
        return min(dues, default=now + self._poll_ms)
