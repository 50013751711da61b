"""Move tasks.  A step's count and its messages are written in the same transaction."""

from __future__ import annotations

from penstock.domain.errors import MoveRunning
from penstock.domain.message import move_task as move
from penstock.domain.message.lifecycle import Message
from penstock.domain.message.move_task import MoveTask
from penstock.store.database import Row
from penstock.store.entities.entity import SelectedEntity, params_of, reader
from penstock.store.verbs.lock_order import NO_LOCK, LockOrder
from penstock.store.verbs.message_changes import MessageChanges
from penstock.store.verbs.transaction_state import TransactionState
from penstock.store.verbs.transfers import Transfers

_ADDED = MoveTask.__struct_fields__[:-4]  # without its end and the names of its queues
_SAVED = ("task_id", "state", "moved", "credit", "credited_at", "ended_at", "reason")
_task_of = reader(MoveTask)


class SqlMoves(SelectedEntity[MoveTask]):
    query = "moves.find"

    def _record_of(self, row: Row) -> MoveTask:
        return _task_of(row)

    def __init__(self, transaction: TransactionState, changes: MessageChanges) -> None:
        super().__init__(transaction)
        self._lock_order = LockOrder(transaction)
        self._transfers = Transfers(transaction, changes)

    def place(self) -> int:
        """A place behind all messages that are in any queue now."""
        return self._transaction.take_numbers(1)[0]

    def add(self, task: MoveTask) -> None:
        if not self._db.rows("moves.add", params_of(task, _ADDED)):
            raise MoveRunning(f"a move from queue {task.source!r} is running already")

    def find(self, task_id: str) -> MoveTask | None:
        return self._select_one("moves.by_id", {"task_id": task_id})

    def lock(self, task_id: str) -> MoveTask | None:
        return self._select_one("moves.lock", {"task_id": task_id})

    def lock_active(self, task_id: str) -> MoveTask | None:
        return self._select_one("moves.lock_active", {"task_id": task_id})

    def of_source(self, queue_no: int, *, limit: int) -> list[MoveTask]:
        params = {"source_no": queue_no, "limit": limit}
        return self._select("moves.of_source", params)

    def active(self) -> list[str]:
        return [task_id for (task_id,) in self._db.rows("moves.active")]

    def save(self, task: MoveTask) -> None:
        self._db.run("moves.save", params_of(task, _SAVED))
        if not task.is_active:
            params = {"source_no": task.source_no, "kept": move.KEPT_PER_SOURCE}
            self._db.run("moves.keep_latest", params)

    def forget(self, *, before_at: int) -> int:
        return self._db.run("moves.forget", {"before_at": before_at})

    def move_some(self, task: MoveTask, *, limit: int, now: int) -> int:
        def movable(lock: str) -> list[Message]:
            return self._movable(task, limit, now, lock)

        found = self._lock_order.lock_to_move(task.source_no, movable, to=task.target_no, now=now)
        self._transfers.bring(found, to=task.target_no, now=now)
        return len(found)

    def is_done(self, task: MoveTask, *, now: int) -> bool:
        return not self._movable(task, 1, now, NO_LOCK)

    def why_left(self, task: MoveTask, *, now: int) -> str | None:
        if task.target_no is not None:
            return None
        params = {"queue_no": task.source_no, "before_no": task.before_no}
        if self._db.rows("moves.homeless", params):
            return move.QUEUE_NOT_FOUND
        sources = {"prefix": "", "contains": "", "after": "", "limit": 1}
        sources["dead_letter_queue"] = task.source
        is_dead_letter_queue = bool(self._db.rows("queues.page_of_sources", sources))
        if is_dead_letter_queue and self._ordinary(task, 1, now, NO_LOCK):
            return move.HOME_UNKNOWN
        return None

    def _movable(self, task: MoveTask, limit: int, now: int, lock: str) -> list[Message]:
        """Dead messages first, then, if there is a target, claimable ones."""
        has_target = task.target_no is not None
        found = self._transfers.dead(
            task.source_no, limit=limit, before_no=task.before_no, any_home=has_target, lock=lock
        )
        if has_target and len(found) < limit:
            found += self._ordinary(task, limit - len(found), now, lock)
        return found

    def _ordinary(self, task: MoveTask, limit: int, now: int, lock: str) -> list[Message]:
        return self._transfers.ordinary(
            task.source_no, limit=limit, before_no=task.before_no, now=now, lock=lock
        )
