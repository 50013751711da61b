"""The registry of workers as a worker sees it: in its own store, or on a server."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress

from penstock.client.remote.server import Remote
from penstock.domain.errors import WorkerGone, WorkerNotFound
from penstock.domain.worker import MOST_KINDS, MOST_QUEUES, NewWorker
from penstock.services.workers import WorkerService
from penstock.worker.assignment import Order
from penstock.worker.registration import Standing


def about(
    order: Order,
    kinds: list[str],
    name: str | None = None,
    labels: dict[str, str] | None = None,
) -> NewWorker:
    """What a worker tells of itself; of more kinds or queues than are taken it names none."""
    return NewWorker(
        name=name,
        host=socket.gethostname()[:200] or None,
        pid=os.getpid(),
        queues=order.queues if len(order.queues) <= MOST_QUEUES else (),
        kinds=tuple(kinds) if len(kinds) <= MOST_KINDS else (),
        slots=order.slots,
        labels=labels or {},
    )


class OwnRoll:
    def __init__(self, workers: WorkerService, about: NewWorker) -> None:
        self._workers = workers
        self._about = about

    def register(self) -> str:
        return self._workers.register(self._about).result().id

    def beat(self, worker_id: str) -> Standing:
        found = self._workers.beat(worker_id).result()
        return _standing(None if found is None else found.is_draining)

    def leave(self, worker_id: str) -> None:
        _unless_gone(lambda: self._workers.leave(worker_id).result())


class RemoteRoll:
    def __init__(self, remote: Remote, about: NewWorker) -> None:
        self._workers = remote.workers
        self._about = about

    def register(self) -> str:
        return self._workers.register(self._about).id

    def beat(self, worker_id: str) -> Standing:
        found = self._workers.beat(worker_id)
        return _standing(None if found is None else found.is_draining)

    def leave(self, worker_id: str) -> None:
        _unless_gone(lambda: self._workers.leave(worker_id))


def _standing(is_draining: bool | None) -> Standing:
    if is_draining is None:
        return Standing.UNKNOWN
    return Standing.DRAINING if is_draining else Standing.ALIVE


def _unless_gone(leave: Callable[[], object]) -> None:
    with suppress(WorkerNotFound, WorkerGone):  # as it should be
        leave()
