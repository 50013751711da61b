"""Moves messages from one queue to another, for redrives and move tasks."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.domain.errors import QueueNotFound
from penstock.domain.message import transfer
from penstock.domain.message.lifecycle import Message
from penstock.domain.queue.queue import Queue
from penstock.store.verbs.message_changes import MessageChanges
from penstock.store.verbs.transaction_state import TransactionState, message_of

NO_PLACE = 2**62  # behind every message


class Transfers:
    def __init__(self, transaction: TransactionState, changes: MessageChanges) -> None:
        self._transaction = transaction
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
        """Dead messages of the queue, oldest first, then dead letters from other queues.

        Without `any_home`, messages whose original queue was removed are left out.  `lock`: see
        lock_order.py.
        """
        params = {
            "queue_no": queue_no,
            "before_no": before_no,
            "any_home": int(any_home),
            "limit": limit,
        }
        rows = self._transaction.db.rows("messages.buried", params, lock=lock)
        if len(rows) < limit:
            params["limit"] = limit - len(rows)
            rows += self._transaction.db.rows("messages.dead_letters", params, lock=lock)
        return [message_of(row) for row in rows]

    def ordinary(
        self, queue_no: int, *, limit: int, before_no: int, now: int, lock: str
    ) -> list[Message]:
        """Messages that are claimable now and did not die in any queue.

        Then those that only a limit of their group holds back, as it does not apply at the target.
        """
        params = {"queue_no": queue_no, "before_no": before_no, "now": now}
        page = params | {"is_blocked": 0, "limit": limit}
        rows = self._transaction.db.rows("moves.ordinary", page, lock=lock)
        if len(rows) < limit and self._transaction.queue(queue_no).settings.limits_groups:
            page = params | {"is_blocked": 1, "limit": limit - len(rows)}
            rows += self._transaction.db.rows("moves.ordinary", page, lock=lock)
        return list(map(message_of, rows))

    def bring(self, messages: Sequence[Message], *, to: int | None, now: int) -> None:
        """Move them to `to`, or each to where it died; without that queue, revive it in place."""
        self._transaction.load_queues({to or m.dead_from or m.queue_no for m in messages})
        for before in messages:
            target = self._home(before) if to is None else self._transaction.queue(to)
            self._changes.note(before, transfer.move(before, target, now=now), now=now)
        self._changes.save()

    def _home(self, dead: Message) -> Queue:
        try:
            return self._transaction.queue(dead.dead_from or dead.queue_no)
        except QueueNotFound:
            return self._transaction.queue(dead.queue_no)
