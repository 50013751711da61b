"""Tables per day: history, attempts, their logs, and bodies.  Old days are dropped as a whole."""

from __future__ import annotations

import logging
from collections.abc import Callable

from penstock.domain.errors import PenstockError
from penstock.store.database import Collision, Database

_CREATE = (
    "create_history",
    "create_history_by_id",
    "create_history_by_queue",
    "create_history_by_kind",
    "create_history_by_tag1",
    "create_history_by_tag2",
    "create_history_by_time",
    "create_attempt",
    "create_attempt_by_id",
    "create_attempt_log",
    "create_body",
)

_log = logging.getLogger("penstock.store")


class Partitions:
    def __init__(self, db: Database) -> None:
        self._db = db
        self._known: set[int] = set()
        self._new: set[int] = set()
        self._make: Callable[[int], None] | None = None
        self._to_drop: list[int] = []  # after the commit, which a change of the schema would cause
        self._left: set[int] = set()  # removed, but their tables could not be dropped

    def make_elsewhere(self, make: Callable[[int], None], known: set[int]) -> None:
        """Create days in another transaction, because this one may last long or be rolled back."""
        self._make = make
        self._known = known

    def open(self) -> None:
        """At the start of a transaction: forget days created in one that was rolled back."""
        self._known -= self._new
        self._new = set()
        self._to_drop = []

    def keep(self) -> None:
        """After a commit: the days created in it exist; those removed in it lose their tables.

        An error is not one of the transaction: another one may be reading the tables.  They are
        dropped with a later day, or when a store is opened.
        """
        self._new = set()
        for day in self._to_drop:
            try:
                self._drop_tables(day)
                self._left.discard(day)
            except (PenstockError, Collision):
                _log.warning("tables of removed day %s could not be dropped", day, exc_info=True)
                self._left.add(day)
                self._db.rollback()
        self._to_drop = []

    def forget(self) -> None:
        """After an error: another process may have dropped a day that we know of."""
        self._known = set()

    def ensure(self, day: int) -> int:
        """Create the tables of a day unless they exist; returns the day."""
        if day not in self._known:
            if self._make is not None:
                self._make(day)
            elif day not in self.days():
                self._db.post("partitions.lock")
                if day not in self.days():  # another node may have created it
                    self.create(day)
                    self._new.add(day)
            self._known.add(day)
        return day

    def days(self) -> list[int]:
        return [day for (day,) in self._db.rows("partitions.days")]

    def drop(self, day: int, *, to_day: int) -> None:
        """Drop a day; bodies of live messages move to the tables of `to_day`."""
        self._db.raise_time_limits()
        self.ensure(to_day)
        self._db.post("partitions.lock")
        days = self.days()
        if day not in days:
            return  # another process was faster
        self._db.run("partitions.save_bodies", {"day": day}, day=day, to_day=to_day)
        self._db.run("partitions.point_bodies", {"day": day, "to_day": to_day})
        if self._db.commits_schema:
            self._to_drop += [day, *sorted(self._left.difference(days))]
        else:
            self._drop_tables(day)
        self._db.run("partitions.remove_day", {"day": day})
        self._known.discard(day)

    def _drop_tables(self, day: int) -> None:
        for what in ("history", "attempt", "attempt_log", "body"):
            self._db.run(f"partitions.drop_{what}", day=day)

    def create(self, day: int) -> None:
        for name in _CREATE:
            self._db.post(f"partitions.{name}", day=day)
        self._db.post("partitions.add_day", {"day": day})
