"""Looks over all queues at once, for those who watch."""

from __future__ import annotations

from penstock.domain.queue.problem import Glance, HangingRoute, OldTransaction, TransactionKind
from penstock.store.nouns.queues import SqlQueues
from penstock.store.verbs.transaction_state import Books


class SqlWatching:
    def __init__(self, books: Books, queues: SqlQueues) -> None:
        self._books = books
        self._queues = queues
        self._db = books.db

    def marks(self) -> dict[int, int]:
        return {no: int(mark) for no, mark in self._db.rows("watching.marks")}

    def workers(self, *, now: int) -> int:
        [(number,)] = self._db.rows("watching.workers", {"now": now})
        return int(number)

    def open_circuits(self) -> int:
        [(number,)] = self._db.rows("watching.circuits")
        return int(number)

    def suspects(self, *, late_at: int, limit: int) -> list[Glance]:
        rows = self._db.rows("watching.suspects", {"late_at": late_at, "limit": limit})
        nos = [no for no, _, _ in rows]
        self._books.load_queues(set(nos))
        counts = self._queues.counts(nos)
        return [
            Glance(self._books.queue(no), counts[no], oldest_at, has_dead_letters == 1)
            for no, oldest_at, has_dead_letters in rows
        ]

    def hanging(self, *, since: int, limit: int) -> list[HangingRoute]:
        rows = self._db.rows("watching.hanging", {"since": since, "limit": limit})
        return [HangingRoute(pattern, int(number), at) for pattern, number, at in rows]

    def transactions(self, *, limit: int) -> list[OldTransaction]:
        rows = self._db.rows("watching.transactions", {"limit": limit})
        return [OldTransaction(TransactionKind(kind), *rest) for kind, *rest in rows]
