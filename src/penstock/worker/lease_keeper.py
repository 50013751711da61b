"""Extends the leases of running jobs: together, after a third of the lease or sooner."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.domain.message.lease import Verb
from penstock.worker.claimed_job import ClaimedJob, JobAct

# A failed extension is how a worker notices that an operator has cancelled a running job.
NOTICE_MS = 3_000


class LeaseKeeper:
    def __init__(self, lease_ms: int) -> None:
        self._renew_ms = max(lease_ms // 3, 1)
        self._every_ms = min(self._renew_ms, NOTICE_MS)
        self.next_at = 0

    def due(self, jobs: Iterable[ClaimedJob], *, now: int) -> list[ClaimedJob]:
        """The jobs whose leases are due for extension; recently claimed ones can wait.

        Includes jobs that still run past their time limit, although there is nothing to extend.
        """
        if now < self.next_at:
            return []
        self.next_at = now + self._every_ms
        return [job for job in jobs if self._is_due(job, now=now)]

    def _is_due(self, job: ClaimedJob, *, now: int) -> bool:
        if job.start_by is not None or job.owes_timeout:
            # As late as the lease allows: an extension past the limit times the job out.  One that
            # has not begun may still begin, and one that was stopped may clean up first.
            return job.renewed_at <= now - self._renew_ms
        return job.stop_reason is None and job.renewed_at <= now - self._every_ms // 3


def extension(job: ClaimedJob, *, now: int) -> JobAct:
    """Extend the lease; progress that the handler reported is sent once.

    If the job began later than it was claimed, its time limit counts from now on.
    """
    is_start, job.is_late_start = job.is_late_start, False
    progress, job.progress = job.progress, None
    job.renewed_at = now
    return JobAct(
        receipt=job.receipt,
        verb=Verb.EXTEND,
        delay_ms=job.lease_ms,
        progress=progress,
        is_start=is_start,
    )


def restore(job: ClaimedJob, act: JobAct) -> None:
    """Restore what an unanswered extension carried, so that the next one repeats it."""
    job.is_late_start = job.is_late_start or act.is_start
    if job.progress is None:
        job.progress = act.progress
