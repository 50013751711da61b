"""A caller's own transaction on a connection of Python's sqlite3."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

from penstock.domain.errors import InvalidRequest, TransactionBusy
from penstock.store.announcements import Hints
from penstock.store.callers.sqlite_write_access import CallerWriteLock
from penstock.store.database import WriteLockTimeout
from penstock.store.sqlite.file_header import identity
from penstock.store.sqlite.sqlite3_database import (
    Sqlite3Database,
    code_of,
    is_busy,
    refuse_old_sqlite,
)

_WHAT_TO_DO = (
    "nothing was sent or changed; roll tx back and run it again, with BEGIN IMMEDIATE before it"
    " reads anything, and a longer timeout for its connection if this happens often"
)
_LEGACY = -1  # sqlite3.LEGACY_TRANSACTION_CONTROL, of Python 3.12 and later


class CallerSqlite3(Sqlite3Database):
    def __init__(
        self, connection: sqlite3.Connection, path: Path, write_lock: CallerWriteLock
    ) -> None:
        try:
            super().__init__(connection)
        except sqlite3.ProgrammingError as error:
            raise InvalidRequest(f"tx cannot be used: {error}") from error
        self._path = path
        self._write_lock = write_lock
        self._text_factory: Any = str

    def enter(self) -> int:
        refuse_old_sqlite()
        self._text_factory, self._db.text_factory = self._db.text_factory, str
        try:
            self._refuse_other_file()
            # Before SQLite 3.51.3, a connection that moves the log while others write can corrupt
            # the database.  Our own connections do it instead, one at a time.
            self.rows("callers.leave_log")
            wait_ms = self._busy_timeout_ms()
            if self._db.in_transaction:
                self._enter_open_transaction(wait_ms)
            else:
                begin = self._how_it_begins()
                with self._write_lock.acquire(wait_ms=wait_ms):
                    self.execute(begin)
                self.rows("callers.savepoint")
        except WriteLockTimeout as error:
            self._restore_text_factory()
            raise TransactionBusy(f"{error}: {_WHAT_TO_DO}") from error
        except BaseException:
            self._restore_text_factory()
            raise
        return 0  # SQLite has one writer: counter rows are not contended

    def acquire_write_lock(self, *, wait: bool) -> bool:
        """Nothing to acquire: `enter` has waited for the lock."""
        return True

    def release_write_lock(self) -> None:
        pass

    def begin(self, *, durable: bool) -> None:
        """Nothing to do: the caller has begun, and its connection decides on durability."""

    def commit(self) -> None:
        self.rows("callers.release")
        self._restore_text_factory()

    def rollback(self) -> None:
        try:
            # After some errors SQLite has rolled everything back by itself.
            if self._db.in_transaction:
                self.rows("callers.roll_back")
                self.rows("callers.release")
        finally:
            self._restore_text_factory()

    def announce(self, hints: Hints) -> None:
        """Nothing to do: other connections detect the commit themselves."""

    def close(self) -> None:
        pass

    def abandon(self) -> None:
        pass

    def _enter_open_transaction(self, wait_ms: int) -> None:
        """Set the savepoint, and lock out other writers until the caller commits."""
        self.rows("callers.savepoint")
        try:
            if not self._can_write_at_once(wait_ms):
                with self._write_lock.acquire(wait_ms=wait_ms):
                    self.rows("callers.take_write_lock")
        except BaseException:
            self.rollback()
            raise

    def _can_write_at_once(self, wait_ms: int) -> bool:
        """Does not wait: a caller that is writing already must not wait for the write lock."""
        self._set_busy_timeout(0)
        try:
            self.rows("callers.take_write_lock")
        except TransactionBusy:
            return False
        finally:
            self._set_busy_timeout(wait_ms)
        return True

    def _busy_timeout_ms(self) -> int:
        """The connection's own busy timeout."""
        [(found,)] = self.execute("PRAGMA busy_timeout")
        return int(found)

    def _set_busy_timeout(self, ms: int) -> None:
        self.execute(f"PRAGMA busy_timeout = {ms}")

    def _translate(self, error: sqlite3.Error) -> Exception:
        if code_of(error) == sqlite3.SQLITE_BUSY_SNAPSHOT:
            return TransactionBusy(
                f"tx has read data that others have changed since: {_WHAT_TO_DO}"
            )
        if is_busy(error):
            return TransactionBusy(
                f"another writer holds the lock for longer than tx waits: {_WHAT_TO_DO}"
            )
        return super()._translate(error)

    def _how_it_begins(self) -> str:
        """The statement with which the connection would begin before its first change."""
        level = self._db.isolation_level
        if level is None or getattr(self._db, "autocommit", _LEGACY) != _LEGACY:
            raise InvalidRequest("tx has no open transaction: the connection is in autocommit mode")
        return f"BEGIN {'IMMEDIATE' if level in ('', 'DEFERRED') else level}"

    def _refuse_other_file(self) -> None:
        files: dict[str, str] = {name: file for _, name, file in self.rows("callers.files")}
        main = files.get("main")
        with suppress(OSError):  # moved or removed
            if main and identity(main) == identity(self._path):
                return
        raise InvalidRequest(
            f"tx is not a connection to the store's own file {self._path}, but to {main!r}"
        )

    def _restore_text_factory(self) -> None:
        self._db.text_factory = self._text_factory
