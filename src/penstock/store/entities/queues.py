"""Queues and messages, apart from the hot path of sends, claims and acts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from penstock.domain.errors import MessageNotFound, QueueExists, QueueNotFound
from penstock.domain.message import lifecycle
from penstock.domain.message.lifecycle import PURGED, Content, Message
from penstock.domain.message.selection import Selection
from penstock.domain.queue.queue import Counts, Queue, QueueSettings
from penstock.ports.store import Browse, Claimable, ScannedPage
from penstock.store.database import Database, Row
from penstock.store.dead_rows.dead_rows import as_lists
from penstock.store.dead_rows.front_parts import EVERYTHING
from penstock.store.entities.entity import MessageEntity, SqlEntity, params_of
from penstock.store.entities.flows import SqlFlows
from penstock.store.limits.limit_changes import LimitChanges
from penstock.store.verbs.claims import Claims
from penstock.store.verbs.dedup_claims import NO_END
from penstock.store.verbs.message_changes import MessageChanges
from penstock.store.verbs.queue_heads import ask_parts
from penstock.store.verbs.transaction_state import TransactionState, json_list, message_of
from penstock.store.verbs.transfers import Transfers

FIRST = (-(2**62), -(2**62), -(2**62), -(2**62))
_LABELS = ("kind", "tag", "group", "entity_id")


def _scan_page(db: Database, wanted: Browse, selection: Selection, *, length: int) -> ScannedPage:
    params = _browse_params(wanted) | params_of(selection, ("sent_from", "sent_before"))
    params["length"] = length
    begin = db.text(f"selection.begin_{wanted.state}")
    order = db.text(f"selection.order_{wanted.state}")
    end = db.rows("selection.end", params, begin=begin, order=order)
    params |= {name: v for name in _LABELS if (v := getattr(selection, name)) is not None}
    conditions = "\n   ".join(
        db.text(f"selection.where_{name}") for name in _LABELS if name in params
    )
    rows = db.rows("selection.page", params, begin=begin, order=order, conditions=conditions)
    return ScannedPage(list(map(message_of, rows)), _place(end[0]) if end else None)


def _browse_params(wanted: Browse) -> dict[str, Any]:
    after = {f"after{i}": number for i, number in enumerate(wanted.after or FIRST, start=1)}
    return params_of(wanted, ("queue_no", "limit")) | after


def _place(numbers: Row) -> tuple[int, int, int, int]:
    first, second, third, fourth = (*numbers, 0, 0, 0)[:4]
    return int(first), int(second), int(third), int(fourth)


class SqlQueues(SqlEntity):
    def __init__(self, transaction: TransactionState) -> None:
        super().__init__(transaction)
        self._limit_changes = LimitChanges(transaction)

    def add(self, name: str, settings: QueueSettings, *, now: int) -> Queue:
        params = {"name": name, "settings": _text(settings), "now": now}
        rows = self._db.rows("queues.add", params)
        if not rows:
            raise QueueExists(f"queue {name!r} exists already")
        made = self._transaction.queue_of(rows[0])
        self._transaction.forget_queue(made.queue_no)
        return made

    def change(
        self,
        queue_no: int,
        *,
        settings: QueueSettings | None = None,
        is_paused: bool | None = None,
        now: int,
    ) -> Queue:
        params = {
            "now": now,
            "queue_no": queue_no,
            "settings": None if settings is None else _text(settings),
            "is_paused": None if is_paused is None else int(is_paused),
        }
        before = self._limit_changes.prepare(queue_no, settings)
        self._db.run("queues.change", params)
        self._transaction.forget_queue(queue_no)
        self._transaction.wake(queue_no)
        after = self._transaction.queue(queue_no)
        if before is not None:
            self._limit_changes.change(before, after, now=now)
        return after

    def lock_holds(self, queue_nos: Sequence[int]) -> None:
        if self._db.is_shared and queue_nos:
            nos = json_list(sorted(set(queue_nos)))
            self._db.post("queues.lock_holds", {"queue_nos": nos})

    def hold(self, queue_nos: Sequence[int], *, by: str) -> None:
        self.lock_holds(queue_nos)
        if queue_nos:
            self._db.run("queues.hold", {"queue_nos": json_list(queue_nos), "held_by": by})
        for queue_no in queue_nos:
            self._transaction.forget_queue(queue_no)

    def unhold(self, queue_nos: Sequence[int]) -> list[int]:
        self.lock_holds(queue_nos)
        if not queue_nos:
            return []
        rows = self._db.rows("queues.unhold", {"queue_nos": json_list(queue_nos)})
        for (queue_no,) in rows:
            self._transaction.forget_queue(queue_no)
            self._transaction.wake(queue_no)
        return [queue_no for (queue_no,) in rows]

    def remove(self, queue_no: int, *, now: int) -> None:
        self._db.run("queues.remove", {"queue_no": queue_no, "now": now})
        self._transaction.forget_queue(queue_no)
        self._limit_changes.forget(queue_no)
        self._transaction.wake(queue_no, 1_000_000)  # wakes every claim that waits there

    def removed_at(self, name: str) -> int | None:
        [(instant,)] = self._db.rows("queues.removed_at", {"name": name})
        return instant  # type: ignore[no-any-return]

    def get(self, queue_no: int) -> Queue:
        return self._transaction.queue(queue_no)

    def find(self, name: str) -> Queue | None:
        return self._transaction.queue_named(name)

    def named(self, name: str) -> Queue:
        found = self.find(name)
        if found is None:
            raise QueueNotFound(name)
        return found

    def lock(self, name: str) -> Queue | None:
        self._limit_changes.stop_if_needed()
        rows = self._db.rows("queues.lock", {"name": name})
        return self._transaction.queue_of(rows[0]) if rows else None

    def find_to_remove(self, name: str) -> Queue | None:
        self._db.post("queues.serialize_removals")
        found = self._transaction.queue_named(name)
        if found is not None:
            self._db.post("queues.stop_writes")
            self._transaction.forget_queue(found.queue_no)
        return found

    def page(
        self,
        *,
        prefix: str,
        after: str,
        limit: int,
        dead_letter_queue: str | None = None,
        contains: str = "",
    ) -> list[Queue]:
        params = {"prefix": prefix, "after": after, "limit": limit, "contains": contains.lower()}
        name = "queues.page"
        if dead_letter_queue is not None:
            name = "queues.page_of_sources"
            params["dead_letter_queue"] = dead_letter_queue
        return [self._transaction.queue_of(row) for row in self._db.rows(name, params)]

    def by_numbers(self, queue_nos: Sequence[int]) -> list[Queue]:
        rows = self._db.rows("queues.by_nos", {"queue_nos": json_list(queue_nos)})
        return [self._transaction.queue_of(row) for row in rows]

    def counts(self, queue_nos: Sequence[int]) -> dict[int, Counts]:
        found = {no: Counts() for no in queue_nos}
        for no, *values in self._db.rows("queues.counts", {"queue_nos": json_list(queue_nos)}):
            found[no] = Counts(*map(int, values))
        return found

    def total(self) -> Counts:
        [row] = self._db.rows("queues.total")
        return Counts(*map(int, row))

    def count(self) -> int:
        [(number,)] = self._db.rows("queues.number_of_queues")
        return int(number)

    def oldest_ready_at(self, queue_no: int) -> int | None:
        parts = self._transaction.dead_rows.parts(queue_no, None)
        if parts is not None:
            rows = [row[3:] for row in self._visible(queue_no, parts)]
        else:
            rows = self._db.rows("messages.oldest_ready", {"queue_no": queue_no})
        return rows[0][0] if rows else None

    def claimable(self, queue_nos: Sequence[int]) -> list[Claimable]:
        avoided = self._transaction.dead_rows.queues.intersection(queue_nos)
        rest = [no for no in queue_nos if no not in avoided] if avoided else queue_nos
        rows = self._db.rows("queues.claimable", {"queue_nos": json_list(rest)}) if rest else []
        found = [Claimable(no, is_ready == 1, due_at) for no, is_ready, due_at in rows]
        return found + [self._claimable(no) for no in sorted(avoided)]

    def _claimable(self, queue_no: int) -> Claimable:
        """The same for a queue with many dead rows."""
        try:
            queue = self._transaction.queue(queue_no)
        except QueueNotFound:
            return Claimable(queue_no, True, None)
        if not queue.is_claimable:
            return Claimable(queue_no, False, None)
        dead_rows = self._transaction.dead_rows
        parts = dead_rows.parts(queue_no, None) or as_lists(EVERYTHING)
        params = {"queue_no": queue_no, "due_from": dead_rows.next_from(queue_no)}
        due = self._db.rows("messages.next_due", params)
        due_at = due[0][0] if due else None
        return Claimable(queue_no, bool(self._visible(queue_no, parts)), due_at)

    def _visible(self, queue_no: int, parts: Sequence[Sequence[object]]) -> list[Row]:
        params = {"queue_no": queue_no, "limit": 1}
        return ask_parts(self._db, "dead_rows.visible", params, parts).rows()


class SqlMessages(MessageEntity):
    def __init__(
        self,
        transaction: TransactionState,
        changes: MessageChanges,
        claims: Claims,
        flows: SqlFlows,
    ) -> None:
        super().__init__(transaction, changes, claims)
        self._flows = flows
        self._transfers = Transfers(transaction, changes)

    def find(self, message_id: str) -> Message | None:
        rows = self._db.rows("messages.by_id", {"id": message_id})
        return message_of(rows[0]) if rows else None

    def by_numbers(self, message_nos: Sequence[int]) -> list[Message]:
        params = {"message_nos": json_list(sorted(set(message_nos)))}
        return list(map(message_of, self._db.rows("messages.by_numbers", params)))

    def content(self, message: Message) -> Content | None:
        return self._claims.contents([message]).get(message.message_no)

    def browse(self, wanted: Browse) -> list[Message]:
        params = _browse_params(wanted)
        return list(map(message_of, self._db.rows(f"messages.browse_{wanted.state}", params)))

    def scan_page(self, wanted: Browse, selection: Selection, *, length: int) -> ScannedPage:
        return _scan_page(self._db, wanted, selection, length=length)

    def change(
        self, message_id: str, change: Callable[[Message, Queue], Message], *, now: int
    ) -> Message:
        try:
            before = self._lock_order.lock_one(message_id, now=now)
        except MessageNotFound:
            return self._flows.change_blocked(message_id, change, now=now)
        after = change(before, self._transaction.queue(before.queue_no))
        noted = self._changes.note(before, after, now=now)
        self._changes.save()
        return noted

    def redrive(self, queue_no: int, *, to: int | None, limit: int, now: int) -> int:
        """Revive dead messages of this queue and dead letters from other queues.

        They go to `to`, or to where they died; if that queue was removed, they stay where they are.
        """

        def dead(lock: str) -> list[Message]:
            return self._transfers.dead(queue_no, limit=limit, lock=lock)

        found = self._lock_order.lock_to_move(queue_no, dead, to=to, now=now)
        self._transfers.bring(found, to=to, now=now)
        return len(found)

    def purge(self, queue_no: int, *, limit: int, now: int) -> int:
        """Cancel up to `limit` messages in any state; their leases are lost."""

        def any_of(lock: str) -> list[Message]:
            params = {"queue_no": queue_no, "limit": limit}
            return list(map(message_of, self._db.rows("messages.any_of", params, lock=lock)))

        found = self._lock_order.lock_all(queue_no, any_of, now=now)
        for before in found:
            after = lifecycle.cancel(before, reason=PURGED, is_running_ok=True)
            self._changes.note(before, after, now=now)
        self._changes.save()
        return len(found)

    def forget_keys(self, queue_no: int, *, limit: int) -> int:
        params = {"queue_no": queue_no, "limit": limit, "no_end": NO_END}
        return self._db.run("dedup.forget_all", params)


def _text(settings: QueueSettings) -> str:
    return msgspec.json.encode(settings).decode()
