"""Workers, and the messages that they have leased."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.domain.message.lifecycle import Message
from penstock.domain.worker import Worker
from penstock.store.database import Row
from penstock.store.entities.entity import SelectedEntity, params_of, reader
from penstock.store.verbs.transaction_state import json_list, message_of

_SAVED = ("state", "beat_at", "alive_until", "ended_at")
_worker_of = reader(Worker)


class SqlWorkers(SelectedEntity[Worker]):
    query = "workers.find"

    def _record_of(self, row: Row) -> Worker:
        return _worker_of(row)

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
        return self._select_one("workers.by_id", {"worker_id": worker_id})

    def lock(self, worker_id: str) -> Worker | None:
        return self._select_one("workers.lock", {"worker_id": worker_id})

    def lock_overdue(self, worker_id: str, *, now: int) -> Worker | None:
        return self._select_one("workers.lock_overdue", {"worker_id": worker_id, "now": now})

    def page(self, *, after: str, limit: int, with_gone: bool) -> list[Worker]:
        which = "workers.all" if with_gone else "workers.present"
        return self._select(which, {"after": after, "limit": limit})

    def overdue(self, *, now: int, limit: int) -> list[Worker]:
        return self._select("workers.overdue", {"now": now, "limit": limit})

    def lost_since(self, after: tuple[int, str], *, limit: int) -> list[Worker]:
        after_at, after_id = after
        params = {"after_at": after_at, "after_id": after_id, "limit": limit}
        return self._select("workers.lost_since", params)

    def save(self, worker: Worker) -> None:
        self._db.run("workers.save", params_of(worker, _SAVED) | {"worker_id": worker.id})

    def forget(self, *, before_at: int) -> int:
        return self._db.run("workers.forget", {"before_at": before_at})

    def leases(
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
        return list(map(message_of, self._db.rows("workers.leases", params)))

    def _with_leases(self) -> set[int]:
        return {no for (no,) in self._db.rows("workers.queues_with_leases")}

    def _queue_nos(self, names: Sequence[str]) -> set[int]:
        found = map(self._transaction.queue_named, set(names))
        return {queue.queue_no for queue in found if queue is not None}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
