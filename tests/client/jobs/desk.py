"""Runs what is due, as a worker would: claim, prepare, call, act."""

from __future__ import annotations

import asyncio

from penstock import Penstock
from penstock.ports.clock import Clock
from penstock.ports.work import Answer, Work, WorkAct
from penstock.runtime.handling import Ready, prepare


class FixedDice:
    def share(self) -> float:
        return 0.5

    def digits(self, count: int) -> str:
        return "0" * count


class PlainControls:
    """Remembers what a job has asked for."""

    def __init__(self) -> None:
        self.asked: list[dict[str, object]] = []
        self.deadline: int | None = None
        self.is_stopping = False

    def extend(self, *, lease_ms: int | None = None, progress: str | None = None) -> None:
        self.asked.append({"lease_ms": lease_ms, "progress": progress})


class JobDesk:
    def __init__(self, app: Penstock, clock: Clock, queue: str) -> None:
        self.app = app
        self.clock = clock
        self.queue = queue
        self.controls = PlainControls()

    def claim(self, *, limit: int = 100, lease_ms: int = 30_000) -> list[Work]:
        found, _ = self.app.work_source().claim(
            [self.queue], limit=limit, lease_ms=lease_ms, worker_id="worker"
        )
        return found

    def act_of(self, work: Work) -> WorkAct:
        ready = prepare(self.app.handlers, work, self.clock)
        if not isinstance(ready, Ready):
            return ready
        if ready.handler.is_async:
            return asyncio.run(ready.run_async(self.app.handlers, self.controls, FixedDice()))
        return ready.run(self.app.handlers, self.controls, FixedDice())

    def act(self, *acts: WorkAct) -> list[Answer]:
        return self.app.work_source().act(acts)

    def run_due(self) -> list[WorkAct]:
        """Everything that is due now, once; tells what was done with each."""
        acts = [self.act_of(work) for work in self.claim()]
        assert self.act(*acts) == [None] * len(acts)
        return acts
