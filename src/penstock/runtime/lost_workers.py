"""The duty that marks workers as lost when their beat is overdue."""

from __future__ import annotations

import logging

from penstock.domain.message.lease import Verb
from penstock.domain.worker import Worker, describe_lost
from penstock.services.workers import MAX_HELD, WorkerService

_log = logging.getLogger("penstock.workers")
_CHUNKS_PER_TICK = 20  # then other duties run; the next tick does the rest


class WorkerReaper:
    """Marks overdue workers as lost, once in the cluster, and releases their leases at once.

    In this order: if this node exits in between, another node releases the leases.
    """

    name = "workers"

    def __init__(self, workers: WorkerService, *, every_ms: int) -> None:
        self._workers = workers
        self._every_ms = every_ms

    def tick(self, now: int) -> int:
        if self._workers.has_overdue(now=now).result():
            self._workers.lose_overdue(now=now).result()
        is_done = True
        for worker in self._workers.lately_lost(now=now).result():
            is_done &= self._give_back(worker)
        return now + (self._every_ms if is_done else 1)

    def _give_back(self, worker: Worker) -> bool:
        """Release its leases; returns whether none is left."""
        for _ in range(_CHUNKS_PER_TICK):
            held = [lease.message for lease in self._workers.leases_of(worker).result()]
            if not held:
                return True
            text = describe_lost(worker)
            _log.warning("%s; %d of its leases are given back", text, len(held))
            self._workers.act_on(held, Verb.CRASH, text=text).result()
            if len(held) < MAX_HELD:
                return True
        return False
