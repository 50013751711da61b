"""Queries of the pusher."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.domain.queue.queue import Queue
from penstock.store.verbs.transaction_state import TransactionState, json_list


class SqlDeliveries:
    def __init__(self, transaction: TransactionState) -> None:
        self._transaction = transaction
        self._db = transaction.db

    def queues_with_ready(self) -> list[int]:
        return [no for (no,) in self._db.rows("deliveries.queues_with_ready")]

    def queues(self, queue_nos: Sequence[int]) -> list[Queue]:
        rows = self._db.rows("deliveries.queues", {"queue_nos": json_list(queue_nos)})
        return [self._transaction.queue_of(row) for row in rows]

    def end_backoff(self, queue_nos: Sequence[int], *, now: int) -> list[int]:
        if not queue_nos:
            return []
        params = {"queue_nos": json_list(queue_nos), "now": now}
        lock = self._db.text("messages.skip_locked")
        rows = self._db.rows("deliveries.end_backoff", params, lock=lock)
        found = sorted({queue_no for (queue_no,) in rows})
        for queue_no in found:
            self._transaction.wake(queue_no)
        return found
