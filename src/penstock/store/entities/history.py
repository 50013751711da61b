"""History, read day by day, and the statements of the pruning duties."""

from __future__ import annotations

import logging

import msgspec

from penstock.domain.limits import DAY
from penstock.domain.message.history import Attempt, Ending, HistoryFilter
from penstock.domain.message.lifecycle import Content
from penstock.domain.store.store_time import Pruning, difference_text, hold_pruning, instant_text
from penstock.store.database import QueryResult, Row
from penstock.store.entities.entity import SqlEntity, reader
from penstock.store.limits.fair_positions import FairPositions
from penstock.store.limits.rates import RateBuckets
from penstock.store.meta_names import CLOCK_MARK, PRUNING
from penstock.store.verbs.claims import Claims, content_of
from penstock.store.verbs.transaction_state import TransactionState, json_list

_LAST = 2**62

_attempt = reader(Attempt)
_ending = reader(Ending)
_pruning = msgspec.json.Decoder(Pruning)
_log = logging.getLogger("penstock.store")


class SqlHistory(SqlEntity):
    def search(self, wanted: HistoryFilter) -> list[Ending]:
        """Newest first; a day without a match costs one index lookup."""
        conditions, params = self._conditions(wanted)
        before_at, before_no = wanted.before or (_LAST, _LAST)
        params |= {
            "from_at": wanted.from_at,
            "to_at": wanted.to_at,
            "before_at": before_at,
            "before_no": before_no,
        }
        found: list[Row] = []
        days = self._days(wanted)
        at_once = 1
        while days and len(found) < wanted.limit:
            params["limit"] = wanted.limit - len(found)
            asked = [self._ask_day(days.pop(), conditions, params) for _ in days[-at_once:]]
            for answer in asked:
                found += answer.rows()
            at_once *= 2  # the first day usually suffices; if not, query many at once
        return [_ending(row) for row in found[: wanted.limit]]

    def attempts(self, message_id: str) -> list[Attempt]:
        days = self._transaction.partitions.days()
        asked = [self._db.ask("history.attempts", {"id": message_id}, day=day) for day in days]
        return [_attempt(row) for answer in asked for row in answer.rows()]

    def content(self, ending: Ending) -> Content | None:
        """The body, unless its day has been dropped."""
        if ending.body_day not in self._transaction.partitions.days():
            return None
        params = {"message_nos": json_list([ending.message_no])}
        rows = self._db.rows("messages.bodies", params, day=ending.body_day)
        return content_of(rows[0][1:]) if rows else None

    def _days(self, wanted: HistoryFilter) -> list[int]:
        first, last = wanted.from_at // DAY, (wanted.to_at - 1) // DAY
        if wanted.before is not None:
            last = min(last, wanted.before[0] // DAY)
        return [day for day in self._transaction.partitions.days() if first <= day <= last]

    def _conditions(self, wanted: HistoryFilter) -> tuple[list[str], dict[str, object]]:
        params: dict[str, object] = {}
        for name in ("id", "kind", "entity_id", "tag", "tag1", "tag2", "outcome"):
            value = getattr(wanted, name)
            if value is not None:
                params[name] = str(value)
        conditions = [f"where_{name}" for name in params]
        if wanted.queue is not None:
            rows = self._db.rows("queues.nos_of_name", {"name": wanted.queue})
            conditions.append("where_queue")
            params["queue_nos"] = json_list([no for (no,) in rows])
        return conditions, params

    def _ask_day(self, day: int, conditions: list[str], params: dict[str, object]) -> QueryResult:
        texts = [self._db.text(f"history.{name}", day=day) for name in conditions]
        return self._db.ask("history.search", params, day=day, conditions="\n   ".join(texts))


class SqlMaintenance(SqlEntity):
    def __init__(self, transaction: TransactionState, claims: Claims) -> None:
        super().__init__(transaction)
        self._claims = claims
        self._rate_buckets = RateBuckets(transaction)
        self._positions = FairPositions(transaction)

    def queues_with_due(self, *, now: int) -> list[int]:
        floors = {str(no): at for no, at in self._transaction.dead_rows.due_floors().items()}
        if floors:
            params = {"now": now, "floors": json_list(floors)}
            return [no for (no,) in self._db.rows("dead_rows.queues_with_due", params)]
        return [no for (no,) in self._db.rows("messages.queues_with_due", {"now": now})]

    def queues_with_expired(self, *, now: int) -> list[int]:
        return [no for (no,) in self._db.rows("messages.queues_with_expired", {"now": now})]

    def return_due(self, queue_no: int, *, now: int, limit: int) -> int:
        return self._claims.return_due(queue_no, now=now, limit=limit)

    def expire(self, queue_no: int, *, now: int, limit: int) -> int:
        return self._claims.expire(queue_no, now=now, limit=limit)

    def forget_dedup(self, *, now: int, limit: int) -> int:
        return self._db.run("dedup.forget", {"now": now, "limit": limit})

    def forget_claims(self, *, now: int, limit: int) -> int:
        return self._db.run("claim_keys.forget", {"now": now, "limit": limit})

    def forget_signals(self, *, now: int, limit: int) -> int:
        return self._db.run("signals.forget", {"now": now, "limit": limit})

    def forget_shares(self, *, limit: int) -> int:
        return self._positions.forget(limit=limit)

    def forget_rates(self, *, now: int, limit: int) -> int:
        return self._rate_buckets.forget(now=now, limit=limit)

    def prepare_days(self, *, now: int) -> None:
        # Not every write updates the clock mark; this keeps it close to the present.
        self._db.post("meta.raise", {"name": CLOCK_MARK, "value": str(now)})
        for day in (now // DAY, now // DAY + 1):
            self._transaction.partitions.ensure(day)

    def old_days(self, *, before_day: int) -> list[int]:
        return [day for day in self._transaction.partitions.days() if day < before_day]

    def drop_day(self, day: int, *, now: int) -> None:
        self._transaction.partitions.drop(day, to_day=now // DAY)
        self._db.run("steps.forget", {"day": day})
        self._db.run("signals.forget_waits")

    def may_prune(self, *, now: int) -> bool:
        rows = self._db.rows("meta.get", {"name": PRUNING})
        before = _pruning.decode(rows[0][0]) if rows else None
        after = hold_pruning(before, now=now)
        text = msgspec.json.encode(after).decode()
        self._db.run("meta.set", {"name": PRUNING, "value": text})
        if after.held_until is not None and (before is None or before.held_until is None):
            _log.warning(
                "the store was last used %s ago, or the clock has jumped ahead:"
                " nothing is pruned before %s",
                difference_text(now - (before.seen_at if before else now)),
                instant_text(after.held_until),
            )
        return after.held_until is None

    def probe_write(self, *, now: int) -> None:
        self._db.run("meta.set", {"name": "ready_at", "value": str(now)})
