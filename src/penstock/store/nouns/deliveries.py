"""What is asked for pushing deliveries."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.domain.queue.queue import Queue
from penstock.store.verbs.transaction_state import Books, json_list


class SqlDeliveries:
    def __init__(self, books: Books) -> None:
        self._books = books
        self._db = books.db

    def queues_with_ready(self) -> list[int]:
        return [no for (no,) in self._db.rows("deliveries.queues_with_ready")]

    def queues(self, queue_nos: Sequence[int]) -> list[Queue]:
        rows = self._db.rows("deliveries.queues", {"queue_nos": json_list(queue_nos)})
        return [self._books.queue_of(row) for row in rows]

    def end_backoff(self, queue_nos: Sequence[int], *, now: int) -> list[int]:
        if not queue_nos:
            return []
        params = {"queue_nos": json_list(queue_nos), "now": now}
        lock = self._db.text("messages.free_ones")
        rows = self._db.rows("deliveries.end_backoff", params, lock=lock)
        found = sorted({queue_no for (queue_no,) in rows})
        for queue_no in found:
            self._books.wake(queue_no)
        return found
