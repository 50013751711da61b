"""The worker's place in the registry: it registers, beats while it lives, and says goodbye."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable
from enum import Enum, auto
from typing import Protocol

from penstock.domain.errors import PenstockError
from penstock.domain.worker import MOST_KINDS, MOST_QUEUES, NewWorker
from penstock.worker.assignment import Order
from penstock.worker.outage import Outage

_log = logging.getLogger("penstock.worker")
_AFTER_ERROR_MS = 5_000


class Standing(Enum):
    ALIVE = auto()
    DRAINING = auto()  # somebody wants it to end
    UNKNOWN = auto()  # never known, or taken for lost


class WorkerRegistry(Protocol):
    """Where workers are registered; safe to share between threads."""

    def register(self) -> str:
        """Returns the worker's id."""
        ...

    def beat(self, worker_id: str) -> Standing: ...
    def leave(self, worker_id: str) -> None: ...


class Beats:
    """As a duty: `tick` does what is due and tells when it wants to be asked again."""

    def __init__(
        self,
        registry: WorkerRegistry,
        *,
        every_ms: int,
        on_id: Callable[[str], None],
        on_drain: Callable[[], None],
        outage: Outage,
    ) -> None:
        self._registry = registry
        self._every_ms = every_ms
        self._on_id = on_id
        self._on_drain = on_drain
        self._outage = outage
        self._worker_id: str | None = None
        self._is_drained = False
        self._next_at = 0

    def tick(self, now: int) -> int:
        if now < self._next_at:
            return self._next_at
        try:
            self._next_at = now + self._every_ms
            self._beat()
            self._outage.end("beats")
        except (PenstockError, OSError) as error:
            self._outage.begin("beats", error)
            self._next_at = now + min(_AFTER_ERROR_MS, self._every_ms)
        return self._next_at

    def leave(self) -> None:
        worker_id, self._worker_id = self._worker_id, None
        if worker_id is None:
            return
        try:
            self._registry.leave(worker_id)
        except (PenstockError, OSError) as error:
            _log.warning("the worker could not be signed off: %s", error)

    def _beat(self) -> None:
        standing = (
            Standing.UNKNOWN if self._worker_id is None else self._registry.beat(self._worker_id)
        )
        if standing is Standing.DRAINING:
            if not self._is_drained:
                _log.info("worker %s is to end, says the registry", self._worker_id)
            self._is_drained = True
            self._on_drain()
        elif standing is Standing.UNKNOWN:
            if self._worker_id is not None:
                _log.warning("worker %s was taken for lost and registers anew", self._worker_id)
            self._worker_id = self._registry.register()
            self._on_id(self._worker_id)


def describe_worker(
    order: Order,
    kinds: list[str],
    name: str | None = None,
    labels: dict[str, str] | None = None,
) -> NewWorker:
    """What a worker registers; it names no kinds or queues if it has more than the limit."""
    return NewWorker(
        name=name,
        host=socket.gethostname()[:200] or None,
        pid=os.getpid(),
        queues=order.queues if len(order.queues) <= MOST_QUEUES else (),
        kinds=tuple(kinds) if len(kinds) <= MOST_KINDS else (),
        slots=order.slots,
        labels=labels or {},
    )
