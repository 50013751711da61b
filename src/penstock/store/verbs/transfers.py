"""From one queue to another: what a redrive and a move task share."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.domain.errors import QueueNotFound
from penstock.domain.message import transfer
from penstock.domain.message.lifecycle import Message
from penstock.domain.queue.queue import Queue
from penstock.store.verbs.message_changes import Changes
from penstock.store.verbs.transaction_state import Books, message_of

NO_PLACE = 2**62  # behind every place in line


class Journeys:
    def __init__(self, books: Books, changes: Changes) -> None:
        self._books = books
        self._changes = changes

    def dead(
        self,
        queue_no: int,
        *,
        limit: int,
        before_no: int = NO_PLACE,
        any_home: bool = True,
        lock: str,
    ) -> list[Message]:
        """Dead ones at rest in a queue, oldest first, then dead letters from elsewhere.

        Without `any_home` those are left out that died in a queue which is gone.  `lock`: see
        store/verbs/lock_order.py.
        """
        params = {
            "queue_no": queue_no,
            "before_no": before_no,
            "any_home": int(any_home),
            "limit": limit,
        }
        rows = self._books.db.rows("messages.buried", params, lock=lock)
        if len(rows) < limit:
            params["limit"] = limit - len(rows)
            rows += self._books.db.rows("messages.dead_letters", params, lock=lock)
        return [message_of(row) for row in rows]

    def ordinary(
        self, queue_no: int, *, limit: int, before_no: int, now: int, lock: str
    ) -> list[Message]:
        """Those that could be claimed now and did not die anywhere.

        Then, if only a limit of their group keeps them from that, the others: it is not theirs.
        """
        params = {"queue_no": queue_no, "before_no": before_no, "now": now}
        line = params | {"is_blocked": 0, "limit": limit}
        rows = self._books.db.rows("moves.ordinary", line, lock=lock)
        if len(rows) < limit and self._books.queue(queue_no).settings.limits_groups:
            line = params | {"is_blocked": 1, "limit": limit - len(rows)}
            rows += self._books.db.rows("moves.ordinary", line, lock=lock)
        return list(map(message_of, rows))

    def bring(self, messages: Sequence[Message], *, to: int | None, now: int) -> None:
        """To `to`, or where each of them died; if that queue is gone, a new life where it is."""
        self._books.load_queues({to or m.dead_from or m.queue_no for m in messages})
        for before in messages:
            target = self._home(before) if to is None else self._books.queue(to)
            self._changes.note(before, transfer.move(before, target, now=now), now=now)
        self._changes.save()

    def _home(self, dead: Message) -> Queue:
        try:
            return self._books.queue(dead.dead_from or dead.queue_no)
        except QueueNotFound:
            return self._books.queue(dead.queue_no)
