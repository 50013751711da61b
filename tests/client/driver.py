"""Runs due work when a test says so, the real way: claim, prepare, call, act."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from penstock import Penstock
from penstock.outbound.dice import SystemDice
from penstock.ports.clock import Clock, Dice
from penstock.ports.work import Answer, Work, WorkAct
from penstock.worker.handling import Ready, prepare
from tests.client.calls import beside


class Controls:
    """Keeps what a job asked for."""

    def __init__(self) -> None:
        self.asked: list[dict[str, object]] = []
        self.deadline: int | None = None
        self.is_stopping = False

    def extend(self, *, lease_ms: int | None = None, progress: str | None = None) -> None:
        self.asked.append({"lease_ms": lease_ms, "progress": progress})


class WorkerDriver:
    """A worker of some queues, one step at a time, on a thread without an event loop.

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
        return self.app.queues

    def claim(self, *, limit: int = 100, lease_ms: int | None = None) -> list[Work]:
        some, others = self._neighbours[:1], self._neighbours[1:]
        names = [*some, *(name for name in self.queues if name not in self._neighbours), *others]
        return self._turn(names, limit, lease_ms or self.lease_ms)[0]

    def act_of(self, work: Work) -> WorkAct:
        return beside(lambda: self._act_of(work))

    def act(self, *acts: WorkAct) -> list[Answer]:
        if self._neighbours:
            found, answers = self._turn(self._neighbours, 1, self.lease_ms, acts)
            assert found == [], "the neighbours are empty"
            return answers
        return beside(lambda: self.app.work_source().act(acts))

    def run_due(self) -> list[WorkAct]:
        """Everything that is due now, once; returns what was done with each."""
        acts = [self.act_of(work) for work in self.claim()]
        assert self.act(*acts) == [None] * len(acts)
        return acts

    def _turn(
        self, queues: Sequence[str], limit: int, lease_ms: int, acts: Sequence[WorkAct] = ()
    ) -> tuple[list[Work], list[Answer]]:
        return beside(
            lambda: self.app.work_source().claim(
                queues, limit=limit, lease_ms=lease_ms, worker_id=self.worker_id, finishing=acts
            )
        )

    def _act_of(self, work: Work) -> WorkAct:
        ready = prepare(self.app.handlers, work, self.clock)
        if not isinstance(ready, Ready):
            return ready
        if ready.handler.is_async:
            return asyncio.run(ready.run_async(self.app.handlers, self.controls, self._dice))
        return ready.run(self.app.handlers, self.controls, self._dice)
