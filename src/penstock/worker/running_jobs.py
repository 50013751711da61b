"""The claimed jobs of a worker, and their places in the table that outlives its process."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

from penstock.ports.clock import Clock
from penstock.worker.attempt_log import JobLogBuffer
from penstock.worker.chunk_gatherer import NEVER
from penstock.worker.claimed_job import ClaimedJob, RunsIn
from penstock.worker.processes.job_table import JobTable

GRACE_MS = 5_000  # how long a cancelled job may clean up before its sandbox is killed


class RunningJobs:
    def __init__(self, table: JobTable, clock: Clock, lease_ms: int, *, has_sandbox: bool) -> None:
        self._table = table
        self._clock = clock
        self._lease_ms = lease_ms
        self._has_sandbox = has_sandbox
        self._places = list(range(table.places))
        self._jobs: dict[str, ClaimedJob] = {}  # by receipt
        self._timed: dict[str, ClaimedJob] = {}  # those that have a time limit
        self._stopped: deque[tuple[int, ClaimedJob]] = deque()  # when to kill cancelled ones

    def __len__(self) -> int:
        return len(self._jobs)

    def __contains__(self, job: ClaimedJob) -> bool:
        return job.receipt in self._jobs

    @property
    def all(self) -> Collection[ClaimedJob]:
        return self._jobs.values()

    @property
    def timed(self) -> Collection[ClaimedJob]:
        """Those that have a time limit."""
        return self._timed.values()

    @property
    def free_places(self) -> int:
        return len(self._places)

    def add(self, job: ClaimedJob, now: int) -> None:
        """Add a job that was just claimed, and decide where it runs."""
        handler = job.handler
        assert handler is not None
        limit_ms = handler.timeout_ms if job.timeout_ms is None else job.timeout_ms
        if handler.is_async:
            job.runs_in = RunsIn.EVENT_LOOP
        if self._has_sandbox and (
            job.crashes or (limit_ms is not None and job.runs_in is RunsIn.THREAD)
        ):
            job.runs_in = RunsIn.SANDBOX
        if handler.keeps_logs:
            job.log = JobLogBuffer(self._clock)
        job.time_limit_ms = limit_ms
        job.lease_ms = self._lease_ms
        job.taken_at = job.renewed_at = now
        job.place = self._places.pop()
        self._jobs[job.receipt] = job
        if limit_ms is not None:
            self._timed[job.receipt] = job
        self._table.note(job.place, receipt=job.receipt, id=job.id, kind=job.kind or "")

    def note_stopped(self, job: ClaimedJob, now: int) -> None:
        """Note that a job was asked to stop because it does not count any more."""
        self._stopped.append((now + GRACE_MS, job))

    @property
    def force_at(self) -> int:
        return self._stopped[0][0] if self._stopped else NEVER

    def force_stubborn(self, now: int) -> None:
        """Kill what did not stop, where it can be killed."""
        while self.force_at <= now:
            _, job = self._stopped.popleft()
            if job in self:
                job.force()

    def remove(self, job: ClaimedJob) -> bool:
        """Its place stays taken until its end was reported."""
        self._timed.pop(job.receipt, None)
        return self._jobs.pop(job.receipt, None) is not None

    def free(self, job: ClaimedJob) -> None:
        """Free the place of a removed job."""
        if job.place >= 0:
            self._table.free(job.place)
            self._places.append(job.place)
            job.place = -1
