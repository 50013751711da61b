"""Tasks stay with their worker as long as it is believed: its beats prolong what it holds."""

from __future__ import annotations

from penstock.domain.message.lease import Verb
from penstock.domain.worker import Worker
from penstock.edge.protocol_queue import OwnQueue
from penstock.services.workers import Workers


class Holding:
    def __init__(self, workers: Workers, queue: OwnQueue, *, grace_ms: int, most_ms: int) -> None:
        self._workers = workers
        self._queue = queue
        self._grace_ms = grace_ms
        self._most_ms = most_ms

    @property
    def queue(self) -> str:
        """The queue of tasks."""
        return self._queue.name

    def lease_ms(self, worker: Worker, *, now: int) -> int:
        """Until somewhat after the worker is given up: its loss is to be noticed first."""
        return min(max(0, worker.alive_until - now) + self._grace_ms, self._most_ms)

    async def beat(self, worker_id: str) -> Worker | None:
        """None: it must register again."""
        worker = await self._workers.beat(worker_id)
        if worker is None or await self._queue.find() is None:
            return worker
        held = await self._workers.leases_in(worker, self._queue.name)
        if held:
            delay_ms = self.lease_ms(worker, now=worker.beat_at)
            await self._workers.act_on(held, Verb.EXTEND, delay_ms=delay_ms)
        return worker
