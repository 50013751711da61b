"""Queries over all queues at once, and their counters minute by minute."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.domain.limits import DAY
from penstock.domain.queue.minute_counters import MinuteCounters, Step
from penstock.domain.queue.problem import (
    HangingRoute,
    OldTransaction,
    QueueSnapshot,
)
from penstock.domain.store.upkeep import TableState, Upkeep
from penstock.store.entities.entity import SqlEntity, reader
from penstock.store.entities.queues import SqlQueues
from penstock.store.verbs.transaction_state import TransactionState, json_list

_transaction = reader(OldTransaction)


class SqlOverview(SqlEntity):
    def __init__(self, transaction: TransactionState, queues: SqlQueues) -> None:
        super().__init__(transaction)
        self._queues = queues

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
        return list(map(_transaction, rows))

    def upkeep(self, *, limit: int) -> Upkeep:
        tables = [TableState(*row) for row in self._db.rows("overview.tables", {"limit": limit})]
        notifications = self._db.rows("overview.notifications")
        return Upkeep(tables, float(notifications[0][0]) if notifications else None)


class SqlMinuteCounters(SqlEntity):
    def add(self, samples: Sequence[MinuteCounters], *, at: int, is_for_lake: bool) -> None:
        if samples:
            more = (at, int(is_for_lake))
            self._db.insert(
                "minute_counters.add", [(*msgspec.structs.astuple(s), *more) for s in samples]
            )

    def first_at(self, queue_no: int) -> int | None:
        [(first_at,)] = self._db.rows("minute_counters.first_at", {"queue_no": queue_no})
        return first_at  # type: ignore[no-any-return]

    def before(self, queue_no: int, *, at: int) -> MinuteCounters | None:
        rows = self._db.rows("minute_counters.before", {"queue_no": queue_no, "at": at})
        return MinuteCounters(*rows[0]) if rows else None

    def steps(self, queue_no: int, *, from_at: int, to_at: int, step_ms: int) -> list[Step]:
        params = {"queue_no": queue_no, "from_at": from_at, "to_at": to_at, "step_ms": step_ms}
        return [
            Step(step_no, MinuteCounters(*sample), most_ready)
            for step_no, most_ready, *sample in self._db.rows("minute_counters.steps", params)
        ]

    def oldest_ready(self, queue_nos: Sequence[int]) -> dict[int, int]:
        rows = self._db.rows("minute_counters.oldest", {"queue_nos": json_list(queue_nos)})
        return {no: oldest_at for no, oldest_at in rows if oldest_at is not None}

    def times(
        self, queue_no: int, *, from_at: int, to_at: int, limit: int
    ) -> list[tuple[int, int]]:
        params = {"queue_no": queue_no, "from_at": from_at, "to_at": to_at, "limit": limit}
        days = {from_at // DAY, (to_at - 1) // DAY} & set(self._transaction.partitions.days())
        asked = [
            self._db.ask("minute_counters.times", params, day=day)
            for day in sorted(days, reverse=True)
        ]
        found = [(wait, work) for answer in asked for wait, work in answer.rows()]
        return found[:limit]

    def thin(self, *, from_at: int, to_at: int, upto_no: int) -> int:
        params = {"from_at": from_at, "to_at": to_at, "upto_no": upto_no}
        return self._db.run("minute_counters.thin", params)

    def forget(self, *, before_at: int, upto_no: int) -> int:
        return self._db.run("minute_counters.forget", {"before_at": before_at, "upto_no": upto_no})
