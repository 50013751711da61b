"""Duties that clean up after workers that are lost or gone."""

from __future__ import annotations

import logging

from penstock.domain.errors import NotFound, QueueNotEmpty
from penstock.domain.message.lease import Verb
from penstock.domain.worker import Worker, describe_lost
from penstock.services.bus import AbandonedQueue, Bus
from penstock.services.queues import QueueService
from penstock.services.workers import MAX_LEASES, WorkerService

_log = logging.getLogger("penstock.workers")
_topics_log = logging.getLogger("penstock.bus")
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
        for worker in self._workers.recently_lost(now=now).result():
            is_done &= self._release(worker)
        return now + (self._every_ms if is_done else 1)

    def _release(self, worker: Worker) -> bool:
        """Release its leases; returns whether none is left."""
        for _ in range(_CHUNKS_PER_TICK):
            leases = [lease.message for lease in self._workers.leases_of(worker).result()]
            if not leases:
                return True
            text = describe_lost(worker)
            _log.warning("%s; releasing %d of its leases", text, len(leases))
            self._workers.act_on(leases, Verb.CRASH, text=text).result()
            if len(leases) < MAX_LEASES:
                return True
        return False


class WorkerQueueReaper:
    """Safe on several nodes at once: each message is handed over once and in order."""

    name = "node_queues"

    def __init__(self, bus: Bus, queues: QueueService, *, every_ms: int) -> None:
        self._bus = bus
        self._queues = queues
        self._every_ms = every_ms

    def tick(self, now: int) -> int:
        is_done = True
        for left in self._bus.abandoned(now=now).result():
            try:
                is_done &= self._hand_over(left, now)
            except NotFound:  # one of the queues or the subscription was removed meanwhile
                continue
        return now + (self._every_ms if is_done else 1)

    def _hand_over(self, left: AbandonedQueue, now: int) -> bool:
        if left.to is not None:
            for _ in range(_CHUNKS_PER_TICK):
                moved = self._bus.hand_over_some(left, now=now).result()
                if not moved:
                    break
                _topics_log.info(
                    "moved %d messages of the abandoned queue %s to the shared queue",
                    moved,
                    left.queue,
                )
            else:
                return False
        try:
            self._queues.remove(left.queue, force=False).result()
            self._bus.forget_removed().result()
        except QueueNotEmpty:  # leased, delayed or dead messages: try again at the next tick
            pass
        return True
