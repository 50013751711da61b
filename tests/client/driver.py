"""Runs due work when a test says so, as a worker does: claim, prepare, call, act."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from penstock import Penstock
from penstock.outbound.dice import SystemDice
from penstock.ports.clock import Clock, Dice
from penstock.worker.application import ActAnswer
from penstock.worker.claimed_job import ClaimedJob, JobAct
from penstock.worker.handling import prepare, run, run_async
from tests.client.calls import beside


class Controls:
    """Records what a job asked for."""

    def __init__(self) -> None:
        self.asked: list[dict[str, object]] = []
        self.deadline: int | None = None
        self.is_stopping = False

    def extend(self, job: ClaimedJob, lease_ms: int | None, progress: str | None) -> None:
        self.asked.append({"lease_ms": lease_ms, "progress": progress})


class WorkerDriver:
    """A worker of some queues that a test steps, on a thread without an event loop.

    With `neighbours` it claims from those, too, and its acts go along with a claim from them: a
    worker of several queues completes a message of one while it claims from another.
    """

    lease_ms = 30_000

    def __init__(
        self,
        app: Penstock,
        clock: Clock,
        *,
        neighbours: Sequence[str] = (),
        dice: Dice | None = None,
    ) -> None:
        self.app = app
        self.clock = clock
        self.controls = Controls()
        self._neighbours = list(neighbours)
        self._dice = dice or SystemDice()

    @property
    def worker_id(self) -> str:
        return "worker"

    @property
    def queues(self) -> list[str]:
        return self.app.worker_queues

    def claim(self, *, limit: int = 100, lease_ms: int | None = None) -> list[ClaimedJob]:
        some, others = self._neighbours[:1], self._neighbours[1:]
        names = [*some, *(name for name in self.queues if name not in self._neighbours), *others]
        return self._turn(names, limit, lease_ms or self.lease_ms)[0]

    def act_of(self, job: ClaimedJob) -> JobAct:
        return beside(lambda: self._act_of(job))

    def act(self, *acts: JobAct) -> list[ActAnswer]:
        if self._neighbours:
            found, answers = self._turn(self._neighbours, 1, self.lease_ms, acts)
            assert found == [], "the neighbours are empty"
            return answers
        return beside(lambda: self.app.job_source().act(acts))

    def run_due(self) -> list[JobAct]:
        """Run everything that is due now, once; returns what was done with each message."""
        acts = [self.act_of(job) for job in self.claim()]
        assert self.act(*acts) == [None] * len(acts)
        return acts

    def _turn(
        self, queues: Sequence[str], limit: int, lease_ms: int, acts: Sequence[JobAct] = ()
    ) -> tuple[list[ClaimedJob], list[ActAnswer]]:
        return beside(
            lambda: self.app.job_source().claim(
                queues, limit=limit, lease_ms=lease_ms, worker_id=self.worker_id, finishing=acts
            )
        )

    def _act_of(self, job: ClaimedJob) -> JobAct:
        act = self.prepare(job)
        if act is not None:
            return act
        if job.handler is not None and job.handler.is_async:
            return asyncio.run(run_async(job, self.app.handlers, self._dice))
        return run(job, self.app.handlers, self._dice)

    def prepare(self, job: ClaimedJob) -> JobAct | None:
        job.deadline, job.is_stopping = self.controls.deadline, self.controls.is_stopping
        job.on_extend = self.controls.extend
        return prepare(self.app.handlers, job, self.clock)
