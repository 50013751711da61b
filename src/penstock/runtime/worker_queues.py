"""The duty that empties workers' own queues, for sticky events, once the workers are gone."""

from __future__ import annotations

import logging

from penstock.domain.errors import NotFound, QueueNotEmpty
from penstock.services.bus import Abandoned, Bus
from penstock.services.queues import QueueService

_log = logging.getLogger("penstock.bus")
_CHUNKS_PER_TICK = 20  # then other duties run; the next tick does the rest


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

    def _hand_over(self, left: Abandoned, now: int) -> bool:
        if left.to is not None:
            for _ in range(_CHUNKS_PER_TICK):
                moved = self._bus.hand_over_some(left, now=now).result()
                if not moved:
                    break
                _log.info("handed %d messages of %s to all workers", moved, left.queue)
            else:
                return False
        try:
            self._queues.remove(left.queue, force=False).result()
            self._bus.forget_removed().result()
        except QueueNotEmpty:  # leased, delayed or dead messages: try again at the next tick
            pass
        return True
