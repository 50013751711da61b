"""Task leases: each beat of a worker extends the leases that it holds."""

from __future__ import annotations

from penstock.domain.errors import QueueNotFound
from penstock.domain.message.lease import Verb
from penstock.domain.worker import Worker
from penstock.ports.unit_of_work import Steps
from penstock.services.directory import Directory
from penstock.services.workers import WorkerService


class TaskLeases:
    def __init__(
        self,
        workers: WorkerService,
        directory: Directory,
        *,
        queue: str,
        grace_ms: int,
        most_ms: int,
    ) -> None:
        """`queue`: the queue of tasks, which need not exist yet."""
        self._workers = workers
        self._directory = directory
        self._grace_ms = grace_ms
        self._most_ms = most_ms
        self.queue = queue

    def lease_ms(self, worker: Worker, *, now: int) -> int:
        """A little longer than the worker counts as alive, so that its loss is noticed first."""
        return min(max(0, worker.alive_until - now) + self._grace_ms, self._most_ms)

    def beat(self, worker_id: str) -> Steps[Worker | None]:
        """Extend the leases; None: the worker must register again."""
        worker = yield from self._workers.beat(worker_id)
        if worker is None or not (yield from self._has_queue()):
            return worker
        held = yield from self._workers.leases_in(worker, self.queue)
        if held:
            delay_ms = self.lease_ms(worker, now=worker.beat_at)
            yield self._workers.act_on(held, Verb.EXTEND, delay_ms=delay_ms)
        return worker

    def _has_queue(self) -> Steps[bool]:
        if self._directory.cached(self.queue) is not None:
            return True
        try:
            yield from self._directory.load(self.queue)
        except QueueNotFound:
            return False
        return True
