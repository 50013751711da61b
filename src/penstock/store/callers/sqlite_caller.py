"""A caller's own transaction on a connection of Python's sqlite3."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from penstock.domain.errors import InvalidRequest, TransactionBusy
from penstock.store.callers.sqlite_write_access import CallersDoor
from penstock.store.database import Occupied
from penstock.store.sqlite.file_header import identity
from penstock.store.sqlite.sqlite3_database import (
    Sqlite3Database,
    code_of,
    is_busy,
    refuse_old_sqlite,
)

_WHAT_TO_DO = (
    "nothing was sent or changed by us; roll tx back and run it again, with BEGIN IMMEDIATE before"
    " it reads anything, and a longer timeout for its connection if this happens often"
)
_LEGACY = -1  # sqlite3.LEGACY_TRANSACTION_CONTROL, of Python 3.12 and later


class CallerSqlite3(Sqlite3Database):
    def __init__(self, connection: sqlite3.Connection, path: Path, door: CallersDoor) -> None:
        try:
            super().__init__(connection)
        except sqlite3.ProgrammingError as error:
            raise InvalidRequest(f"tx cannot be used: {error}") from error
        self._path = path
        self._door = door
        self._text_factory: Any = str

    def enter(self) -> int:
        refuse_old_sqlite()
        self._text_factory, self._db.text_factory = self._db.text_factory, str
        try:
            self._refuse_other_file()
            # In versions before 3.51.3 a connection that moves the log while others write can
            # corrupt the database.  Ours do it instead, one at a time.
            self.rows("callers.leave_log")
            wait_ms = self._patience_ms()
            if self._db.in_transaction:
                self._hold(wait_ms)
            else:
                begin = self._how_it_begins()
                with self._door.turn(wait_ms=wait_ms):
                    self.execute(begin)
                self.rows("callers.savepoint")
        except Occupied as error:
            self._give_back()
            raise TransactionBusy(f"{error}: {_WHAT_TO_DO}") from error
        except BaseException:
            self._give_back()
            raise
        return 0  # one writer at a time: nobody waits for a row

    def take_turn(self, *, wait: bool) -> bool:
        """It was ours when we entered."""
        return True

    def give_turn_back(self) -> None:
        pass

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

    def _hold(self, wait_ms: int) -> None:
        """Set the savepoint, and see to it that nobody else writes until the caller commits."""
        self.rows("callers.savepoint")
        try:
            if not self._holds_at_once(wait_ms):
                with self._door.turn(wait_ms=wait_ms):
                    self.rows("callers.hold")
        except BaseException:
            self.rollback()
            raise

    def _holds_at_once(self, wait_ms: int) -> bool:
        """Without waiting: a caller who writes already must not wait for its turn."""
        self._be_patient_for(0)
        try:
            self.rows("callers.hold")
        except TransactionBusy:
            return False
        finally:
            self._be_patient_for(wait_ms)
        return True

    def _patience_ms(self) -> int:
        """How long this connection wants to wait for SQLite."""
        [(found,)] = self.execute("PRAGMA busy_timeout")
        return int(found)

    def _be_patient_for(self, ms: int) -> None:
        self.execute(f"PRAGMA busy_timeout = {ms}")

    def _meaning(self, error: sqlite3.Error) -> Exception:
        if code_of(error) == sqlite3.SQLITE_BUSY_SNAPSHOT:
            return TransactionBusy(f"tx has read what others have changed since: {_WHAT_TO_DO}")
        if is_busy(error):
            return TransactionBusy(f"others write for longer than tx waits: {_WHAT_TO_DO}")
        return super()._meaning(error)

    def _how_it_begins(self) -> str:
        """As the connection would before the first change; we are about to make some."""
        level = self._db.isolation_level
        if level is None or getattr(self._db, "autocommit", _LEGACY) != _LEGACY:
            raise InvalidRequest("tx has no transaction open: the connection is in autocommit")
        return f"BEGIN {'IMMEDIATE' if level in ('', 'DEFERRED') else level}"

    def _refuse_other_file(self) -> None:
        files: dict[str, str] = {name: file for _, name, file in self.rows("callers.files")}
        main = files.get("main")
        with suppress(OSError):  # moved away, or removed
            if main and identity(main) == identity(self._path):
                return
        raise InvalidRequest(
            f"tx is not a connection to the store's own file {self._path}, but to {main!r}"
        )

    def _give_back(self) -> None:
        self._db.text_factory = self._text_factory
