"""What vacuum has left to do in the database; empty for databases that need none."""

from __future__ import annotations

import msgspec

MANY_DEAD_ROWS = 500_000
FULL_NOTIFICATIONS = 0.5


class TableState(msgspec.Struct, frozen=True):
    """A table and its dead rows, as counted by the database, which may be a little late."""

    name: str
    rows: int
    dead_rows: int
    vacuumed_at: int | None  # None: not yet

    @property
    def is_bloated(self) -> bool:
        return self.dead_rows >= MANY_DEAD_ROWS


class Upkeep(msgspec.Struct, frozen=True):
    tables: list[TableState]  # those with most dead rows first; not those of single days
    notifications: float | None  # how full the queue of notifications is: 0 to 1

    @property
    def bloated(self) -> list[TableState]:
        return [table for table in self.tables if table.is_bloated]

    @property
    def is_notification_queue_full(self) -> bool:
        return self.notifications is not None and self.notifications >= FULL_NOTIFICATIONS
