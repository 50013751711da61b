"""A caller's own transaction on a connection of Python's sqlite3."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from penstock.domain.errors import InvalidRequest
from penstock.store.file_header import identity
from penstock.store.sqlite3_database import Sqlite3Database, refuse_old_sqlite

_LEGACY = -1  # sqlite3.LEGACY_TRANSACTION_CONTROL, of Python 3.12 and later


class CallerSqlite3(Sqlite3Database):
    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        try:
            super().__init__(connection)
        except sqlite3.ProgrammingError as error:
            raise InvalidRequest(f"tx cannot be used: {error}") from error
        self._path = path
        self._text_factory: Any = str

    def enter(self) -> int:
        refuse_old_sqlite()
        self._text_factory, self._db.text_factory = self._db.text_factory, str
        try:
            self._refuse_other_file()
            # In versions before 3.51.3 a connection that moves the log while others write can
            # corrupt the database.  Ours do it instead, one at a time.
            self.rows("callers.leave_log")
            self._begin_as_it_does()
            self.rows("callers.savepoint")
        except BaseException:
            self._give_back()
            raise
        try:
            self.rows("callers.hold")
        except BaseException:
            self.rollback()
            raise
        return 0  # one writer at a time: nobody waits for a row

    def begin(self, *, durable: bool) -> None:
        """It has begun.  Whether it is durable, the caller's connection decides."""

    def commit(self) -> None:
        self.rows("callers.release")
        self._give_back()

    def rollback(self) -> None:
        try:
            # After some errors SQLite has rolled back everything by itself.
            if self._db.in_transaction:
                self.rows("callers.roll_back")
                self.rows("callers.release")
        finally:
            self._give_back()

    def tell(self, woken: Mapping[int, int]) -> None:
        """Other connections notice by themselves that something was committed."""

    def close(self) -> None:
        pass

    def abandon(self) -> None:
        pass

    def _begin_as_it_does(self) -> None:
        """As the connection would before the first change; we are about to make some."""
        if self._db.in_transaction:
            return
        level = self._db.isolation_level
        if level is None or getattr(self._db, "autocommit", _LEGACY) != _LEGACY:
            raise InvalidRequest("tx has no transaction open: the connection is in autocommit")
        self.execute(f"BEGIN {'IMMEDIATE' if level in ('', 'DEFERRED') else level}")

    def _refuse_other_file(self) -> None:
        files: dict[str, str] = dict(self.rows("callers.files"))
        main = files.get("main")
        with suppress(OSError):  # moved away, or removed
            if main and identity(main) == identity(self._path):
                return
        raise InvalidRequest(
            f"tx is not a connection to the store's own file {self._path}, but to {main!r}"
        )

    def _give_back(self) -> None:
        self._db.text_factory = self._text_factory
