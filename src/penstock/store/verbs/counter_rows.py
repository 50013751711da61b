"""Which row of a queue's counters a connection adds to.

Connections add to different rows, so that they do not wait for each other.  On PostgreSQL each
change leaves a dead version of the row, and while an old transaction is open anywhere in the
database, none of them can be removed: after an hour, every commit would read a million of them to
find the live one.  So a connection continues in a new row after `_MAX_CHANGES` changes, and the
dead versions of earlier rows are not read by later commits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec.structs import astuple

from penstock.domain.queue.queue import Counts
from penstock.store.database import Database, Row

_MAX_CHANGES = 32  # of one row
_MAX_QUEUES = 20_000  # whose rows are remembered
FIRST_MOVING = 1 << 32  # rows with smaller numbers do not move


class CounterRows(Protocol):
    number: int  # of the row of a topic

    def add(self, db: Database, changes: Mapping[int, Counts]) -> None:
        """Add these changes to the counters of their queues."""
        ...


class FixedRow:
    """The same row for ever."""

    def __init__(self, number: int) -> None:
        self.number = number

    def add(self, db: Database, changes: Mapping[int, Counts]) -> None:
        # Sorted, so that two transactions cannot wait for each other's rows.
        rows = [(no, self.number, *astuple(changes[no])) for no in sorted(changes)]
        db.insert("queues.count", rows)


class MovingRows:
    """A new row after some changes, which takes over the numbers of the last one.

    Row numbers end with the `slot` of the connection.  At its first change of a queue, a connection
    merges all rows with its slot, such as those of connections that were closed.  If another open
    connection has the same slot, it continues in a new row as well.
    """

    def __init__(self, slot: int, *, slots: int, start: int) -> None:
        """`start`: larger than that of any earlier connection.

        If two connections use the same row, they wait for each other, and their changes are added.
        """
        self.number = slot
        self._slots = slots
        self._next = start
        self._rows: dict[int, list[int]] = {}  # by queue: row, the one before, changes

    def add(self, db: Database, changes: Mapping[int, Counts]) -> None:
        rows: list[Row] = []
        # Sorted, so that two transactions cannot wait for each other's rows.
        for no in sorted(changes):
            row = self._rows.get(no)
            if row is not None and row[2] < _MAX_CHANGES:
                row[2] += 1
                rows.append((no, row[0], *astuple(changes[no])))
                continue
            if rows:
                db.insert("queues.count", rows)
                rows = []
            self._move(db, no, changes[no])
        if rows:
            db.insert("queues.count", rows)

    def _move(self, db: Database, queue_no: int, change: Counts) -> None:
        row = self._rows.get(queue_no)
        self._next += 1
        number = FIRST_MOVING + self._next * self._slots + self.number
        params = {"queue_no": queue_no, "stripe": number} | {
            name: getattr(change, name) for name in Counts.__struct_fields__
        }
        if row is None:
            if len(self._rows) >= _MAX_QUEUES:
                self._rows.clear()
            slot = {"slot": self.number, "slots": self._slots, "first": FIRST_MOVING}
            db.post("queues.count_in_merged_row", params | slot)
            self._rows[queue_no] = [number, number, 1]
        else:
            # If the transaction of an earlier move was rolled back, its old row is still there.
            db.post("queues.count_in_new_row", params | {"last": row[0], "before": row[1]})
            self._rows[queue_no] = [number, row[0], 1]
