"""The workers of a fleet, read from the store's registry of workers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TypeVar

from penstock.domain.errors import StoreUnavailable, WorkerGone, WorkerNotFound
from penstock.domain.worker import Worker, is_alive
from penstock.ports.clock import Clock
from penstock.ports.fleet_registry import FLEET, REPLICA, Member
from penstock.ports.store import Session, Store
from penstock.ports.ticket import Ticket
from penstock.services.workers import Workers

T = TypeVar("T")

TIMEOUT_S = 10.0
_ENOUGH = 50  # a worker with this many leases counts as busy as one with more


class StoreFleetRegistry:
    def __init__(self, workers: Workers, store: Store, clock: Clock) -> None:
        self._workers = workers
        self._store = store
        self._clock = clock

    def members(self, fleet: str) -> list[Member]:
        now = self._clock.now()
        return [
            _member(worker)
            for worker in _answer(self._workers.all())
            if worker.labels.get(FLEET) == fleet and is_alive(worker, now=now)
        ]

    def holding(self, worker_ids: Sequence[str]) -> dict[str, int]:
        def do(session: Session) -> dict[str, int]:
            held = session.workers.held
            return {one: len(held([one], queues=None, limit=_ENOUGH)) for one in worker_ids}

        return _answer(self._store.read(do))

    def drain(self, worker_id: str) -> None:
        with suppress(WorkerGone, WorkerNotFound):
            _answer(self._workers.drain(worker_id))


def _member(worker: Worker) -> Member:
    return Member(
        id=worker.id,
        replica=worker.labels.get(REPLICA),
        host=worker.host,
        is_draining=worker.is_draining,
        registered_at=worker.registered_at,
    )


def _answer(ticket: Ticket[T]) -> T:
    try:
        return ticket.result(TIMEOUT_S)
    except TimeoutError as error:
        raise StoreUnavailable(f"the store has not answered within {TIMEOUT_S:g} s") from error
