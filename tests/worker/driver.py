"""A pump with manual slots: real store, real handlers, no threads, no waiting."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock import Penstock
from penstock.api.jobs.attempt_logs import LogPart
from penstock.domain.circuit.circuit import OutcomeReport, PermitAnswer
from penstock.domain.message.lifecycle import Message
from penstock.worker.application import ActAnswer, JobSource, Unanswered
from penstock.worker.assignment import Assignment
from penstock.worker.claimed_job import ClaimedJob, JobAct
from penstock.worker.handling import run
from penstock.worker.processes.job_table import JobTable
from penstock.worker.pump import Pump
from tests.clocks import ManualClock

LEASE_MS = 30_000


class HandSlots:
    """Slots in which jobs begin only when a test says so."""

    def __init__(self) -> None:
        self.waiting: deque[ClaimedJob] = deque()

    def give(self, jobs: Sequence[ClaimedJob]) -> None:
        self.waiting.extend(jobs)

    def take_back(self) -> list[ClaimedJob]:
        taken, self.waiting = list(self.waiting), deque()
        return taken


class LuckyDice:
    def share(self) -> float:
        return 0.5

    def digits(self, count: int) -> str:
        return "0" * count


class Interruptible:
    """A source that a test can make unavailable."""

    def __init__(self, source: JobSource) -> None:
        self._source = source
        self.error: Exception | None = None
        self.claims = 0
        self.asked: list[list[str]] = []
        self.reports = 0
        self.no_answer: Exception | None = None  # raised by requests for permits
        self.answered: int | None = None  # how many acts of a call reach the store; None: all

    def claim(self, *args: Any, **kwargs: Any) -> tuple[list[ClaimedJob], list[ActAnswer]]:
        self.claims += 1
        self._check()
        acts = kwargs.pop("finishing", ())
        missing = [Unanswered("gone")] * len(acts[self.answered :] if self.answered else ())
        sent = acts[: len(acts) - len(missing)]
        found, answers = self._source.claim(*args, finishing=sent, **kwargs)
        return found, [*answers, *missing]

    def act(self, acts: Sequence[JobAct]) -> list[ActAnswer]:
        self._check()
        return self._source.act(acts)

    def listen(self, queues: Sequence[str], callback: Callable[[], None]) -> Callable[[], None]:
        return self._source.listen(queues, callback)

    def permits(self, jobs: Mapping[str, str]) -> Mapping[str, PermitAnswer] | None:
        self.asked.append(list(jobs))
        if self.no_answer is not None:
            raise self.no_answer
        return self._source.permits(jobs)

    def keep_logs(self, parts: Sequence[LogPart]) -> list[str]:
        self._check()
        return self._source.keep_logs(parts)

    def report(self, reports: Sequence[OutcomeReport]) -> None:
        self._check()
        self.reports += 1
        self._source.report(reports)

    def _check(self) -> None:
        if self.error is not None:
            raise self.error


class PumpDriver:
    """One worker of an application; `turn` is one step of its pump."""

    def __init__(
        self, app: Penstock, clock: ManualClock, *, has_sandbox: bool = False, **order: Any
    ) -> None:
        self.app = app
        self.clock = clock
        self.order = Assignment(
            **{"queues": ("mail",), "prefetch": 0, "lease_ms": LEASE_MS, **order}
        )
        self.slots = HandSlots()
        self.source = Interruptible(app.job_source())
        self.table = JobTable.create(self.order.places)
        self.pump = Pump(
            self.order,
            self.source,
            app.handlers,
            clock,
            LuckyDice(),
            slots=self.slots,  # type: ignore[arg-type]
            table=self.table,
            has_sandbox=has_sandbox,
        )
        self.pump.worker_id = "ada"

    def turn(self) -> int:
        return self.pump.tick(self.clock.now())

    def begin(self) -> ClaimedJob:
        """Give the next waiting job a slot."""
        job = self.slots.waiting.popleft()
        job.begin(self.clock.now())
        for each in job.members or (job,):
            self.table.begin(
                each.place, now=self.clock.now(), deadline=each.deadline, is_sandboxed=False
            )
            if each.is_late_start:
                self.pump.note_extension(each)
        return job

    def end(self, job: ClaimedJob) -> None:
        """Call the handler and end the job."""
        act = run(job, self.app.handlers, LuckyDice())
        for each in job.members or (job,):
            self.table.end(each.place)
        self.pump.finished.append((job, act))

    def run_all(self) -> None:
        while self.slots.waiting:
            self.end(self.begin())

    def message(self, message_id: str) -> Message | None:
        """The message; None if it has ended."""
        backend: Any = self.app._lazy_backend.get()
        found: Message | None = backend.broker.messages.find(message_id).result()
        return found

    def close(self) -> None:
        self.table.close()
