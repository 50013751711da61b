"""A driver for a worker of all queues of an application."""

from __future__ import annotations

from collections.abc import Sequence

from penstock import Penstock
from penstock.client.local.backend import LocalBackend
from penstock.domain.queue.queue import Counts
from penstock.domain.worker import NewWorker
from penstock.ports.clock import Clock
from penstock.wiring.broker import Broker
from penstock.worker.claimed_job import ClaimedJob, JobAct
from tests.client.driver import WorkerDriver


def broker_of(app: Penstock) -> Broker:
    backend = app.backend
    assert isinstance(backend, LocalBackend)
    return backend.broker


class BusDriver(WorkerDriver):
    """A worker that is registered, so that it can be lost."""

    def __init__(
        self,
        app: Penstock,
        clock: Clock,
        *,
        broker: Broker | None = None,
        neighbours: Sequence[str] = (),
        lease_ms: int = 60_000,
    ) -> None:
        super().__init__(app, clock, neighbours=neighbours)
        self._broker = broker
        self.lease_ms = lease_ms
        self._id: str | None = None

    @property
    def id(self) -> str:
        if self._id is None:
            broker = self._broker or broker_of(self.app)
            self._id = broker.workers.register(NewWorker()).result().id
        return self._id

    @property
    def worker_id(self) -> str:
        return self.id

    def round(self) -> list[str]:
        """Handle what is due; returns the ids in the order of handling."""
        work = self.claim()
        for one in work:
            assert self.act(self.handle(one)) == [None]
        return [one.id for one in work]

    def handle(self, work: ClaimedJob) -> JobAct:
        return self.act_of(work)


def counts(broker: Broker, queue: str) -> Counts:
    return broker.queues.get(queue).result().counts


def exists(broker: Broker, queue: str) -> bool:
    return broker.queues.exists(queue).result()
