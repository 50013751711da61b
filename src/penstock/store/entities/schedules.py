"""Schedules of recurring work.  A firing is recorded in the transaction that sends its message."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.domain.schedule.schedule import CatchUp, Overlap, Rhythm, Schedule, Template
from penstock.store.database import Row
from penstock.store.verbs.transaction_state import TransactionState


class Definition(msgspec.Struct, frozen=True):
    """The part of a schedule that its owner declares, stored as one JSON text."""

    rhythm: Rhythm
    template: Template
    catch_up: CatchUp
    overlap: Overlap


_definition = msgspec.json.Decoder(Definition)
_PLAIN = (
    "name",
    "next_at",
    "last_at",
    "last_id",
    "fired_total",
    "skipped_total",
    "last_error",
    "created_at",
    "changed_at",
    "owner",
)


class SqlSchedules:
    def __init__(self, transaction: TransactionState) -> None:
        self._db = transaction.db

    def add(self, schedule: Schedule) -> bool:
        """False: the name is taken."""
        return bool(self._db.rows("schedules.add", _params(schedule)))

    def save(self, schedule: Schedule) -> None:
        params = _params(schedule)
        del params["created_at"]
        self._db.run("schedules.save", params)

    def remove(self, name: str) -> bool:
        return self._db.run("schedules.remove", {"name": name}) == 1

    def find(self, name: str) -> Schedule | None:
        return self._one("by_name", {"name": name})

    def to_change(self, name: str) -> Schedule | None:
        return self._one("to_change", {"name": name})

    def to_fire(self, name: str, *, now: int) -> Schedule | None:
        return self._one("to_fire", {"name": name, "now": now})

    def page(self, *, after: str, limit: int) -> list[Schedule]:
        return self._select("page", {"after": after, "limit": limit})

    def of_owner(self, owner: str) -> list[Schedule]:
        return self._select("of_owner", {"owner": owner})

    def due(self, *, now: int, limit: int, after: tuple[int, str]) -> list[tuple[int, str]]:
        after_at, after_name = after
        params = {"now": now, "limit": limit, "after_at": after_at, "after_name": after_name}
        return [(next_at, name) for next_at, name in self._db.rows("schedules.due", params)]

    def next_at(self, *, now: int) -> int | None:
        rows = self._db.rows("schedules.next", {"now": now})
        return int(rows[0][0]) if rows else None

    def _one(self, which: str, params: dict[str, Any]) -> Schedule | None:
        found = self._select(which, params)
        return found[0] if found else None

    def _select(self, which: str, params: dict[str, Any]) -> list[Schedule]:
        conditions = self._db.text(f"schedules.{which}")
        rows = self._db.rows("schedules.find", params, conditions=conditions)
        return list(map(_schedule_of, rows))


def _params(schedule: Schedule) -> dict[str, Any]:
    words = Definition(schedule.rhythm, schedule.template, schedule.catch_up, schedule.overlap)
    return {name: getattr(schedule, name) for name in _PLAIN} | {
        "words": msgspec.json.encode(words).decode(),
        "is_paused": int(schedule.is_paused),
    }


def _schedule_of(row: Row) -> Schedule:
    name, text, is_paused, next_at, last_at, last_id, fired, skipped, error, *rest = row
    created, changed, owner = rest
    words = _definition.decode(text)
    return Schedule(
        name=name,
        rhythm=words.rhythm,
        template=words.template,
        catch_up=words.catch_up,
        overlap=words.overlap,
        is_paused=bool(is_paused),
        next_at=next_at,
        last_at=last_at,
        last_id=last_id,
        fired_total=fired,
        skipped_total=skipped,
        last_error=error,
        created_at=created,
        changed_at=changed,
        owner=owner,
    )
