"""Schedules of recurring work.  A firing is recorded in the transaction that sends its message."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.domain.schedule.schedule import CatchUp, Overlap, Rhythm, Schedule, Template
from penstock.store.database import Row
from penstock.store.entities.entity import SelectedEntity, params_of


class Definition(msgspec.Struct, frozen=True):
    """The part of a schedule that its owner declares, stored as one JSON text."""

    rhythm: Rhythm
    template: Template
    catch_up: CatchUp
    overlap: Overlap


_definition = msgspec.json.Decoder(Definition)
_COLUMNS = (
    *("name", "words", "is_paused", "next_at", "last_at", "last_id", "fired_total"),
    *("skipped_total", "last_error", "created_at", "changed_at", "owner"),
)
_PLAIN = tuple(name for name in _COLUMNS if name != "words")


class SqlSchedules(SelectedEntity[Schedule]):
    query = "schedules.find"

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
        return self._select_one("schedules.by_name", {"name": name})

    def lock(self, name: str) -> Schedule | None:
        return self._select_one("schedules.lock", {"name": name})

    def lock_due(self, name: str, *, now: int) -> Schedule | None:
        return self._select_one("schedules.lock_due", {"name": name, "now": now})

    def page(self, *, after: str, limit: int) -> list[Schedule]:
        return self._select("schedules.page", {"after": after, "limit": limit})

    def of_owner(self, owner: str) -> list[Schedule]:
        return self._select("schedules.of_owner", {"owner": owner})

    def due(self, *, now: int, limit: int, after: tuple[int, str]) -> list[tuple[int, str]]:
        after_at, after_name = after
        params = {"now": now, "limit": limit, "after_at": after_at, "after_name": after_name}
        return [(next_at, name) for next_at, name in self._db.rows("schedules.due", params)]

    def next_at(self, *, now: int) -> int | None:
        rows = self._db.rows("schedules.next", {"now": now})
        return int(rows[0][0]) if rows else None

    def _record_of(self, row: Row) -> Schedule:
        values = dict(zip(_COLUMNS, row, strict=True))
        definition = _definition.decode(values.pop("words"))
        values |= msgspec.structs.asdict(definition) | {"is_paused": bool(values["is_paused"])}
        return Schedule(**values)


def _params(schedule: Schedule) -> dict[str, Any]:
    words = Definition(schedule.rhythm, schedule.template, schedule.catch_up, schedule.overlap)
    text = msgspec.json.encode(words).decode()
    return params_of(schedule, _PLAIN) | {"words": text}
