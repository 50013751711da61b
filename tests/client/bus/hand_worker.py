"""A worker that does one round when it is told to: the real way from a claim to its act."""

from __future__ import annotations

import asyncio

from penstock import Penstock
from penstock.client.embedded import Embedded
from penstock.domain.counts import Counts
from penstock.domain.worker import NewWorker
from penstock.outbound.dice import SystemDice
from penstock.ports.work import Work, WorkAct
from penstock.runtime.handling import Ready, prepare
from penstock.wiring import Broker
from tests.clocks import ManualClock


class Controls:
    deadline = None
    is_stopping = False

    def extend(self, *, lease_ms: int | None = None, progress: str | None = None) -> None:
        pass


def broker_of(app: Penstock) -> Broker:
    backing = app.backing
    assert isinstance(backing, Embedded)
    return backing.broker


class HandWorker:
    """Registered, so that it can be lost."""

    def __init__(self, app: Penstock, clock: ManualClock, *, lease_ms: int = 60_000) -> None:
        self.app = app
        self._clock = clock
        self._lease_ms = lease_ms
        self.id = broker_of(app).workers.register(NewWorker()).result().id

    def claim(self, limit: int = 100) -> list[Work]:
        source = self.app.work_source()
        queues = self.app.queues
        work, _ = source.claim(queues, limit=limit, lease_ms=self._lease_ms, worker_id=self.id)
        return work

    def round(self, limit: int = 100) -> list[str]:
        """Handle what is due; the ids in the order in which they were handled."""
        work = self.claim(limit)
        for one in work:
            [refused] = self.app.work_source().act([self.handle(one)])
            assert refused is None, refused
        return [one.id for one in work]

    def handle(self, work: Work) -> WorkAct:
        ready = prepare(self.app.handlers, work, self._clock)
        if not isinstance(ready, Ready):
            return ready
        if ready.handler.is_async:
            return asyncio.run(ready.run_async(self.app.handlers, Controls(), SystemDice()))
        return ready.run(self.app.handlers, Controls(), SystemDice())


def counts(app: Penstock, queue: str) -> Counts:
    return broker_of(app).queues.get(queue).result().counts


def exists(app: Penstock, queue: str) -> bool:
    return broker_of(app).queues.exists(queue).result()
