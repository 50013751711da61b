"""SQLite through apsw, set up so that a commit is on the disk before it is acknowledged.

apsw's wheel includes a current SQLite.  Versions before 3.51.3 can corrupt a database when the WAL
is reset while another connection writes, and the system's SQLite is usually older than that.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw

from penstock.domain.errors import StoreDamaged, StoreRefused, StoreUnavailable
from penstock.store.damage.damage_watch import DamageWatch
from penstock.store.damage.log_damage import (
    LogEnd,
    find_log_end,
    log_dropped_end,
    recovery_advice,
    refuse_damaged_log,
)
from penstock.store.database import Collision, DirectDatabase, NotADatabase, Row, WriteLockTimeout
from penstock.store.queries import Queries, insert_parts
from penstock.store.sqlite import checksums
from penstock.store.sqlite.busy_wait import BusyWait
from penstock.store.sqlite.errors import is_damage, storage_error
from penstock.store.sqlite.full_disk import check_free_space, reserve_index
from penstock.store.sqlite.locked_transactions import WriteLockMixin
from penstock.store.sqlite.log_mover import LogMover
from penstock.store.sqlite.log_sync import BUSY_MS, is_failed_sync, make_log_durable
from penstock.store.sqlite.opening import opening
from penstock.store.sqlite.write_lock import WriteLock

_log = logging.getLogger("penstock.store")

OLDEST_SQLITE = 3_051_003
CHECKPOINT_PAGES = 10_000  # measured: p99 2.8 ms instead of 6.1 with the default 1,000
SMALL_LOG_PAGES = 1_000  # moved within milliseconds, so the writer does it itself
CACHE_KIB = 32 * 1024
CLOSING_MS = 2_000  # closing under the write lock only saves the next process some work
_NO_TABLE = "no such table"  # of a day that another process has dropped


class OpenElsewhere(StoreUnavailable):
    """The log must be made durable, but other processes have the store open."""


class SqliteDatabase(WriteLockMixin, DirectDatabase):
    _db: apsw.Connection
    dialect = "sqlite"
    is_shared = False
    commits_schema = False
    finds_deadlocks = False

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool = False,
        write_lock: WriteLock | None = None,
        damage_watch: DamageWatch | None = None,
    ) -> None:
        self._damage_watch = damage_watch
        self.is_alive = True
        self._logged_pages = 0
        self._moved_pages = 0  # at the last check
        self._move_at = CHECKPOINT_PAGES
        self._queries = Queries(self.dialect)
        self._is_read_only = read_only
        self._write_lock = write_lock
        self._busy_wait = BusyWait(BUSY_MS)
        try:
            self._db = self._open(path, read_only)
        except apsw.BusyError as error:
            raise storage_error(error) from error
        except apsw.NotADBError as error:
            raise NotADatabase(f"cannot open {path}: {error}") from error
        except (apsw.Error, OSError) as error:
            if is_damage(error):
                raise StoreDamaged(f"{path} is damaged: {error}. {recovery_advice()}") from error
            raise StoreUnavailable(f"cannot open {path}: {error}") from error
        self._cursor = self._db.cursor()
        self._mover = LogMover(
            self._db.db_filename("main"), on_failed=self._mark_failed_sync_at_once
        )

    def _open(self, path: Path, read_only: bool) -> apsw.Connection:
        refuse_old_sqlite(apsw.SQLITE_VERSION_NUMBER)
        check_free_space(path)
        is_checked = checksums.turn_on()
        flags = apsw.SQLITE_OPEN_READONLY if read_only else 0
        if not read_only:
            flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        # Large enough for one insert statement per number of rows, so that all stay prepared.
        db = apsw.Connection(str(path), flags=flags, statementcachesize=600)
        try:
            self._set_up(db, path, read_only, is_checked)
        except BaseException:
            # Left to the garbage collector, it would be closed later, with SQLite's cached index of
            # the log, and closing would move the log although the disk fails.
            _abandon(db)
            raise
        return db

    def _set_up(self, db: apsw.Connection, path: Path, read_only: bool, is_checked: bool) -> None:
        db.set_busy_handler(self._busy_wait.wait)
        # Without this, SQLite replans a statement whenever a bound value changes (measured: a claim
        # takes 100 µs instead of 15).
        db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        db.pragma("cache_size", -CACHE_KIB)
        db.pragma("temp_store", "memory")
        if not read_only:
            if is_checked and not path.stat().st_size:
                db.reserve_bytes("main", checksums.RESERVED_BYTES)
            _make_durable(db)
            reserve_index(str(path))
            db.set_wal_hook(self._note_pages)

    def rows(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> list[Row]:
        try:
            return self._cursor.execute(self._queries.text(name, **fill), params or {}).fetchall()
        except apsw.Error as error:
            raise self._translate(error) from error

    def run(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> int:
        self.rows(name, params, **fill)
        return self._db.changes()

    def insert(self, name: str, rows: Sequence[Row], **fill: object) -> list[Row]:
        back: list[Row] = []
        try:
            for text, values in insert_parts(self._queries.text(name, **fill), rows):
                back += self._cursor.execute(text, values).fetchall()
        except apsw.Error as error:
            raise self._translate(error) from error
        return back

    def update(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        try:
            self._cursor.executemany(self._queries.text(name), rows)
        except apsw.Error as error:
            raise self._translate(error) from error

    def script(self, text: str) -> None:
        self.execute(text)

    def commit(self) -> None:
        self.execute("COMMIT")
        self._unsynced = 0 if self._is_synced else self._unsynced + 1
        if self._logged_pages >= self._move_at or self._mover.has_begun:
            self._move_log()
        self.release_write_lock()

    def _note_pages(self, _db: apsw.Connection, _name: str, pages: int) -> int:
        if pages < self._logged_pages:  # the log was restarted
            self._move_at = CHECKPOINT_PAGES
        self._logged_pages = pages
        return apsw.SQLITE_OK

    def _move_log(self) -> None:
        """Checkpoint.  SQLite would do it by itself, but would not report a failed sync.

        The commit before it is durable.  After a failed sync this connection is not used again,
        because later commits would build on pages that may not be on the disk.
        """
        mover = self._mover
        if mover.is_moving:
            return
        try:
            if mover.has_failed:
                raise apsw.IOError("a sync has failed")
            if self._needs_mover() and mover.begin():
                return
            mover.rest()
            logged, moved = self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            # Pages that a reader still uses cannot be moved, now or in a moment.
            self._move_at = CHECKPOINT_PAGES if moved == logged else logged + CHECKPOINT_PAGES
        except apsw.BusyError:  # another process moves the log
            self._move_at = self._logged_pages + CHECKPOINT_PAGES
        except apsw.Error as error:
            _log.warning("the log could not be moved into the database: %s", error)
            self.is_alive = False
            self._mark_failed_sync()

    def _needs_mover(self) -> bool:
        """False if little is left, or if a reader keeps the log from being moved."""
        before = self._moved_pages
        logged, self._moved_pages = self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
        if not self._mover.has_begun:
            return True
        return self._moved_pages > before and logged - self._moved_pages > SMALL_LOG_PAGES

    def checkpoint(self, *, again: bool = False) -> None:
        """Move the whole log into the database, synced, and restart it.

        `again`: a sync may have failed, so pages that were moved before must be moved again.  That
        fails if another process has the store open, and with it SQLite's shared index of the log.
        """
        try:
            _, moved = self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
            if again and moved:
                raise StoreUnavailable("after a failed sync no other process may use the store")
            self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError:
            pass  # another process reads; the log is durable, and is moved later
        except apsw.Error as error:
            raise self._translate(error) from error

    def close(self) -> None:
        """Under the write lock: the last connection moves the log while others may be opening."""
        try:
            self.acquire_write_lock(wait=True, patience_ms=CLOSING_MS)
        except WriteLockTimeout:
            self.is_alive = False
        self._mover.close()
        if self.is_alive and not self._mover.has_failed:
            self._db.close()
            self.release_write_lock()
        else:
            self.abandon()

    def abandon(self) -> None:
        """Close without touching the files: after a failed sync, memory and disk may differ.

        The next connection, made by `open_synced`, reads the log from the disk.
        """
        self._mover.close()
        _abandon(self._db)
        self.release_write_lock()

    @property
    def connection(self) -> apsw.Connection:
        return self._db

    def execute(self, text: str) -> list[Row]:
        try:
            return self._cursor.execute(text).fetchall()
        except apsw.Error as error:
            raise self._translate(error) from error

    _execute_patiently = execute  # SQLite itself waits for other writers

    def _translate(self, error: apsw.Error) -> Exception:
        """The error for the caller; if a sync may have failed, every process is warned."""
        if isinstance(error, apsw.BusyError) and self._busy_wait.is_short:
            return Collision("another program writes to the store")
        if isinstance(error, apsw.SQLError) and _NO_TABLE in str(error):
            return Collision(str(error))
        if is_failed_sync(error):
            self._mark_failed_sync()
        if is_damage(error) and self._damage_watch is not None:
            return self._damage_watch.report(error)
        return storage_error(error)


def open_synced(
    path: Path,
    write_lock: WriteLock,
    *,
    again: bool = False,
    damage_watch: DamageWatch | None = None,
) -> SqliteDatabase:
    """Open for writing; first move the log that a crash or a failed sync left, and sync it.

    While other processes have the store open, the log is left as it is: a process that fails to
    sync it sets a mark, and then no process opens the store before the log is durable.
    """
    with opening(write_lock) as is_alone:
        again = again or write_lock.has_failed_sync
        if not is_alone and not write_lock.has_failed_sync:
            return SqliteDatabase(path, write_lock=write_lock, damage_watch=damage_watch)
        if not is_alone:
            raise OpenElsewhere("a sync has failed: other processes must close the store first")
        make_log_durable(path)
        db = SqliteDatabase(path, write_lock=write_lock, damage_watch=damage_watch)
        try:
            _check_log(db, path)
            db.checkpoint(again=again)
        except BaseException:
            db.abandon()
            raise
        write_lock.clear_failed_sync()
        write_lock.admit_others()
        return db


def end_of_log(db: SqliteDatabase, path: Path) -> LogEnd | None:
    """The part of the log that SQLite does not read; no other process may have the store open."""
    try:
        accepted, _ = db.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
        numbers_page = None
        if db.connection.reserve_bytes("main") == checksums.RESERVED_BYTES:
            # No application writes to such a file, so every send is ours and was synced.
            numbers_page = next((page for (page,) in db.rows("log.numbers_page")), None)
        return find_log_end(path, accepted, numbers_page=numbers_page)
    except apsw.Error as error:
        raise storage_error(error) from error
    except OSError as error:
        raise StoreUnavailable(f"cannot read the log of {path}: {error}") from error


def _check_log(db: SqliteDatabase, path: Path) -> None:
    """Raises StoreDamaged; logs an unfinished end that a power cut left."""
    end = end_of_log(db, path)
    refuse_damaged_log(path, end)
    try:
        if end is not None:
            log_dropped_end(path, end)
    except OSError as error:
        raise StoreUnavailable(f"cannot copy the log of {path}: {error}") from error


def _abandon(db: apsw.Connection) -> None:
    try:
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        db.close(True)
    except apsw.Error:
        pass


def _make_durable(db: apsw.Connection) -> None:
    refuse_unsafe("journal_mode", db.pragma("journal_mode", "wal"), "wal")
    db.pragma("synchronous", "full")
    refuse_unsafe("synchronous", db.pragma("synchronous"), 2)


def refuse_old_sqlite(version: int) -> None:
    if version < OLDEST_SQLITE:
        raise StoreRefused(f"SQLite {version} can corrupt a WAL; 3.51.3 or later is needed")


def refuse_unsafe(name: str, found: object, wanted: object) -> None:
    """Raise if a pragma has silently failed: acknowledged messages could be lost without it."""
    if found != wanted:
        raise StoreRefused(f"SQLite's {name} is {found!r}; it must be {wanted!r}")
