"""A worker's entry in the registry: it registers, sends beats, and leaves."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable

from penstock.domain.errors import PenstockError
from penstock.domain.worker import MAX_KINDS, MAX_QUEUES, NewWorker
from penstock.worker.application import RegistryStatus, WorkerRegistry
from penstock.worker.assignment import Assignment
from penstock.worker.log import OutageReporter

_log = logging.getLogger("penstock.worker")
_AFTER_ERROR_MS = 5_000


class Beats:
    """A duty: `tick` does what is due and returns when it is next due."""

    def __init__(
        self,
        registry: WorkerRegistry,
        *,
        every_ms: int,
        on_id: Callable[[str], None],
        on_drain: Callable[[], None],
        outage: OutageReporter,
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
            _log.warning("cannot remove the worker from the registry: %s", error)

    def _beat(self) -> None:
        worker_id = self._worker_id
        status = RegistryStatus.UNKNOWN if worker_id is None else self._registry.beat(worker_id)
        if status is RegistryStatus.DRAINING:
            if not self._is_drained:
                _log.info("worker %s was asked to drain", worker_id)
            self._is_drained = True
            self._on_drain()
        elif status is RegistryStatus.UNKNOWN:
            if worker_id is not None:
                _log.warning("worker %s is no longer registered; registering again", worker_id)
            self._worker_id = self._registry.register()
            self._on_id(self._worker_id)


def describe_worker(
    assignment: Assignment,
    kinds: list[str],
    name: str | None = None,
    labels: dict[str, str] | None = None,
) -> NewWorker:
    """Build a worker's registration; a list of kinds or queues above the limit is omitted."""
    return NewWorker(
        name=name,
        host=socket.gethostname()[:200] or None,
        pid=os.getpid(),
        queues=assignment.queues if len(assignment.queues) <= MAX_QUEUES else (),
        kinds=tuple(kinds) if len(kinds) <= MAX_KINDS else (),
        slots=assignment.slots,
        labels=labels or {},
    )
