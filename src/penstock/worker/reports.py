"""Ends and extensions of jobs: queued until the store has answered each of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from penstock.domain.errors import LeaseLost, NotFound, PenstockError
from penstock.domain.message.lease import Verb
from penstock.ports.clock import Clock, Dice
from penstock.worker.application import ActAnswer, Unanswered
from penstock.worker.circuit_gate import CircuitGate
from penstock.worker.claimed_job import ClaimedJob, JobAct, StopReason
from penstock.worker.lease_keeper import LeaseKeeper, extension, restore
from penstock.worker.log import JobLog
from penstock.worker.outcomes import after_rejection, time_out
from penstock.worker.running_jobs import RunningJobs

Report = tuple[ClaimedJob | None, JobAct]  # None: the job never reached a slot


class Reports:
    def __init__(
        self,
        jobs: RunningJobs,
        gate: CircuitGate,
        log: JobLog,
        clock: Clock,
        dice: Dice,
        *,
        lease_ms: int,
    ) -> None:
        self.unsent: list[Report] = []  # ends that the store has not confirmed
        self._to_extend: deque[ClaimedJob] = deque()  # on request of a handler
        self._keeper = LeaseKeeper(lease_ms)
        self._jobs = jobs
        self._gate = gate
        self._log = log
        self._clock = clock
        self._dice = dice
        self._lease_ms = lease_ms

    def end(self, job: ClaimedJob, act: JobAct) -> None:
        if job.route is not None:
            act = self._gate.end(job, act, self._clock.now())
        self.unsent.append((job, act))

    def end_unstarted(self, act: JobAct) -> None:
        self.unsent.append((None, act))

    def time_out(self, job: ClaimedJob) -> None:
        self.end(job, time_out(job, dice=self._dice.share()))

    def request_extension(self, job: ClaimedJob) -> None:
        """Callable from any thread."""
        self._to_extend.append(job)

    @property
    def next_at(self) -> int:
        """When leases are due for extension."""
        return self._keeper.next_at

    def extensions(self, now: int) -> list[Report]:
        """The extensions that are due, and those that handlers have requested."""
        wanted: dict[str, ClaimedJob] = {}
        while self._to_extend:
            job = self._to_extend.popleft()
            if job.stop_reason is None and job.place >= 0:
                wanted[job.receipt] = job
        for job in self._keeper.due(self._jobs.all, now=now):
            if job.owes_timeout:
                # It has not stopped.  If its lease expired, another worker would run it.
                self.time_out(job)
                job.stop_reason = StopReason.LEASE_LOST
            else:
                wanted[job.receipt] = job
        return [(job, extension(job, now=now)) for job in wanted.values()]

    def take(self, extensions: Sequence[Report]) -> list[Report]:
        """Take the extensions and everything unsent, to be sent to the store now."""
        ends, self.unsent = self.unsent, []
        return [*extensions, *ends]

    def send_again(self, reports: Sequence[Report]) -> None:
        """Queue the acts that the store did not answer, to be sent again."""
        ends = [(job, act) for job, act in reports if act.verb is not Verb.EXTEND]
        self.unsent = ends + self.unsent
        for job, act in reports:
            if job is not None and act.verb is Verb.EXTEND:
                restore(job, act)
                self._to_extend.append(job)

    def take_answers(
        self, reports: Sequence[Report], answers: Sequence[ActAnswer], now: int
    ) -> Unanswered | None:
        """Process the answers; returns the first error of acts that have to be sent again."""
        missing: list[Report] = []
        unanswered: Unanswered | None = None
        for report, answer in zip(reports, answers, strict=True):
            if isinstance(answer, Unanswered):
                missing.append(report)
                unanswered = unanswered or answer
            else:
                self._take_answer(*report, answer, now)
        self.send_again(missing)
        return unanswered

    def _take_answer(
        self, job: ClaimedJob | None, act: JobAct, error: PenstockError | None, now: int
    ) -> None:
        if job is None:
            return
        if act.verb is Verb.EXTEND:
            if error is not None and job in self._jobs:
                self._take_rejected_extension(job, act, error)
            return
        if error is None:
            self._log.log_end(job, act, now=now)
        elif (instead := after_rejection(act, error)) is not None:
            self.unsent.append((job, instead))
            return
        else:
            self._log.log_rejection(job, act, error)
        if job not in self._jobs:
            self._jobs.free(job)

    def _take_rejected_extension(self, job: ClaimedJob, act: JobAct, error: PenstockError) -> None:
        if isinstance(error, LeaseLost | NotFound):
            job.stop(StopReason.LEASE_LOST)
            self._jobs.note_stopped(job, self._clock.now())
            self._log.log_lost_lease(job)
            return
        # The handler passed invalid values, but the lease is ours: extend without them.
        self._log.log_rejection(job, act, error)
        job.lease_ms = self._lease_ms
        job.is_late_start = act.is_start
        job.renewed_at = 0
