"""Workers, and the messages that they have leased."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from penstock.domain.message.lifecycle import Message
from penstock.domain.worker import Worker, WorkerState
from penstock.store.database import Row
from penstock.store.verbs.transaction_state import TransactionState, json_list, message_of

_TEXTS = msgspec.json.Decoder(tuple[str, ...])
_LABELS = msgspec.json.Decoder(dict[str, str])
_SAVED = ("state", "beat_at", "alive_until", "ended_at")


class SqlWorkers:
    def __init__(self, transaction: TransactionState) -> None:
        self._transaction = transaction
        self._db = transaction.db

    def add(self, worker: Worker) -> None:
        params = msgspec.structs.asdict(worker)
        params |= {
            "worker_id": params.pop("id"),
            "state": worker.state.value,
            "queues": _json(worker.queues),
            "kinds": _json(worker.kinds),
            "labels": _json(worker.labels),
        }
        self._db.run("workers.add", params)

    def find(self, worker_id: str) -> Worker | None:
        return self._one("by_id", {"worker_id": worker_id})

    def to_change(self, worker_id: str) -> Worker | None:
        return self._one("to_change", {"worker_id": worker_id})

    def to_lose(self, worker_id: str, *, now: int) -> Worker | None:
        return self._one("to_lose", {"worker_id": worker_id, "now": now})

    def page(self, *, after: str, limit: int, with_gone: bool) -> list[Worker]:
        which = "all" if with_gone else "present"
        return self._select(which, {"after": after, "limit": limit})

    def overdue(self, *, now: int, limit: int) -> list[Worker]:
        return self._select("overdue", {"now": now, "limit": limit})

    def lost_since(self, after: tuple[int, str], *, limit: int) -> list[Worker]:
        after_at, after_id = after
        params = {"after_at": after_at, "after_id": after_id, "limit": limit}
        return self._select("lost_since", params)

    def save(self, worker: Worker) -> None:
        params = {name: getattr(worker, name) for name in _SAVED}
        self._db.run("workers.save", params | {"worker_id": worker.id, "state": worker.state.value})

    def forget(self, *, before_at: int) -> int:
        return self._db.run("workers.forget", {"before_at": before_at})

    def held(
        self, worker_ids: Sequence[str], *, queues: Sequence[str] | None, limit: int
    ) -> list[Message]:
        queue_nos = self._with_leases() if queues is None else self._queue_nos(queues)
        if not queue_nos or not worker_ids:
            return []
        params = {
            "queue_nos": json_list(sorted(queue_nos)),
            "worker_ids": json_list(worker_ids),
            "limit": limit,
        }
        return list(map(message_of, self._db.rows("workers.held", params)))

    def _with_leases(self) -> set[int]:
        return {no for (no,) in self._db.rows("workers.queues_with_leases")}

    def _queue_nos(self, names: Sequence[str]) -> set[int]:
        found = map(self._transaction.queue_named, set(names))
        return {queue.queue_no for queue in found if queue is not None}

    def _one(self, which: str, params: dict[str, Any]) -> Worker | None:
        found = self._select(which, params)
        return found[0] if found else None

    def _select(self, which: str, params: dict[str, Any]) -> list[Worker]:
        conditions = self._db.text(f"workers.{which}")
        return list(map(_worker_of, self._db.rows("workers.find", params, conditions=conditions)))


def _worker_of(row: Row) -> Worker:
    worker_id, state, name, host, pid, queues, kinds, slots, labels, *times = row
    return Worker(
        worker_id,
        WorkerState(state),
        name,
        host,
        pid,
        _TEXTS.decode(queues),
        _TEXTS.decode(kinds),
        slots,
        _LABELS.decode(labels),
        *times,
    )


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
