"""Queries over all queues at once, for the overview and the metrics."""

from __future__ import annotations

from penstock.domain.queue.problem import (
    HangingRoute,
    OldTransaction,
    QueueSnapshot,
    TransactionKind,
)
from penstock.store.entities.queues import SqlQueues
from penstock.store.verbs.transaction_state import TransactionState


class SqlOverview:
    def __init__(self, transaction: TransactionState, queues: SqlQueues) -> None:
        self._transaction = transaction
        self._queues = queues
        self._db = transaction.db

    def marks(self) -> dict[int, int]:
        return {no: int(mark) for no, mark in self._db.rows("overview.marks")}

    def workers(self, *, now: int) -> int:
        [(number,)] = self._db.rows("overview.workers", {"now": now})
        return int(number)

    def open_circuits(self) -> int:
        [(number,)] = self._db.rows("overview.circuits")
        return int(number)

    def suspects(self, *, late_at: int, limit: int) -> list[QueueSnapshot]:
        rows = self._db.rows("overview.suspects", {"late_at": late_at, "limit": limit})
        nos = [no for no, _, _ in rows]
        self._transaction.load_queues(set(nos))
        counts = self._queues.counts(nos)
        return [
            QueueSnapshot(
                self._transaction.queue(no), counts[no], oldest_at, takes_dead_letters == 1
            )
            for no, oldest_at, takes_dead_letters in rows
        ]

    def hanging(self, *, since: int, limit: int) -> list[HangingRoute]:
        rows = self._db.rows("overview.hanging", {"since": since, "limit": limit})
        return [HangingRoute(pattern, int(number), at) for pattern, number, at in rows]

    def transactions(self, *, limit: int) -> list[OldTransaction]:
        rows = self._db.rows("overview.transactions", {"limit": limit})
        return [OldTransaction(TransactionKind(kind), *rest) for kind, *rest in rows]
