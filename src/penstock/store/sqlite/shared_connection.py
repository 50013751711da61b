"""A SQLite file that the application has open as well, through Python's sqlite3.

Two copies of SQLite in one process do not see each other's locks: the system keeps locks per
process, and the copy that closes the file first drops those of the other.  Both would write at the
same time.  So a file that is shared with an application is opened with the application's copy and
not with apsw's.  Such a file is recognised by its lack of checksums, which sqlite3 would not write;
we call it plain.

That copy may be older than 3.51.3; before that version, moving the log while another connection
writes can corrupt the database.  So here the log is moved only while all writers are kept out; see
`move_log`.

Stores use the write lock (write_lock.py).  While holding it, a writer may still have to wait for
the application's own connection.  It waits here and not in SQLite's busy handler, which cannot tell
a thread (which may wait) from an event loop (which may not).
"""

from __future__ import annotations

import itertools
import logging
import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from penstock.domain.errors import StoreRefused, StoreUnavailable
from penstock.store.damage.damage_watch import DamageWatch
from penstock.store.damage.log_damage import find_log_end, refuse_damaged_log
from penstock.store.database import Collision, WriteLockTimeout
from penstock.store.sqlite import checksums
from penstock.store.sqlite.busy_wait import BusyWait
from penstock.store.sqlite.deadlock import refuse_deadlock
from penstock.store.sqlite.file_header import reserved_bytes
from penstock.store.sqlite.locked_transactions import WriteLockMixin
from penstock.store.sqlite.log_sync import log_of
from penstock.store.sqlite.opening import opening
from penstock.store.sqlite.sqlite3_database import (
    Sqlite3Database,
    code_of,
    is_busy,
    is_damage,
    refuse_old_sqlite,
    storage_error,
)
from penstock.store.sqlite.write_lock import PATIENCE_MS, WriteLock

_log = logging.getLogger("penstock.store")

CACHE_KIB = 32 * 1024
_STEP = 1 << 20
COMMITS_PER_MOVE = 1_000  # commits between moves of the log into the database
CLOSING_MS = 2_000  # closing under the write lock only saves the next process some work
MOVE_MS = 1_000  # if the application writes for longer: retried after the next commit
_TRIES_BEFORE_CHECK = 10  # some 50 ms: most writers are done by then
_READS = (sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ)


def is_plain(path: Path, *, new_ones: bool = False) -> bool:
    """Whether the file has no checksums; `new_ones`: the answer for a file that does not exist."""
    reserved = reserved_bytes(path)
    return new_ones if reserved is None else reserved != checksums.RESERVED_BYTES


class LogMoveTimer:
    """Counts commits, ours and those of callers, and decides when to move the log."""

    def __init__(self) -> None:
        self._commits = itertools.count(1)
        self._is_late = False

    def is_due(self) -> bool:
        is_late, self._is_late = self._is_late, False
        return next(self._commits) % COMMITS_PER_MOVE == 0 or is_late

    def postpone(self) -> None:
        """The move failed: due again after the next commit."""
        self._is_late = True


class PlainSqliteDatabase(Sqlite3Database, WriteLockMixin):
    commits_schema = False
    finds_deadlocks = True

    def __init__(
        self,
        path: Path,
        moves: LogMoveTimer,
        *,
        read_only: bool = False,
        write_lock: WriteLock | None = None,
        patience_ms: int = PATIENCE_MS,
        damage_watch: DamageWatch | None = None,
    ) -> None:
        self._damage_watch = damage_watch
        self.is_alive = True
        self._path = path
        self._moves = moves
        self._is_read_only = read_only
        self._write_lock = write_lock
        self._busy_wait = BusyWait(patience_ms)
        try:
            # A writer waits in this class, a reader in SQLite.
            waits_ms = patience_ms if read_only else 0
            super().__init__(_connect(path, read_only=read_only, patience_ms=waits_ms))
        except sqlite3.Error as error:
            raise _cannot_open(path, error) from error
        try:
            self._set_up()
        except (sqlite3.Error, OSError) as error:
            self._db.close()
            raise _cannot_open(path, error) from error
        except BaseException:
            self._db.close()
            raise

    def commit(self) -> None:
        self.execute("COMMIT")
        self._unsynced = 0 if self._is_synced else self._unsynced + 1
        if self._moves.is_due():
            self._move_log()
        self.release_write_lock()

    def close(self) -> None:
        """Under the write lock: the last connection moves the log while others may be opening."""
        with suppress(WriteLockTimeout):
            self.acquire_write_lock(wait=True, patience_ms=CLOSING_MS)
        try:
            self._db.close()
        finally:
            self.release_write_lock()

    def abandon(self) -> None:
        try:
            self._db.close()
        finally:
            self.release_write_lock()

    def _set_up(self) -> None:
        refuse_old_sqlite()
        self._execute_patiently(f"PRAGMA cache_size = {-CACHE_KIB}")
        self._execute_patiently("PRAGMA temp_store = memory")
        if not self._is_read_only:
            found = self._execute_patiently("PRAGMA journal_mode = wal")
            _refuse_unless("journal_mode", found, "wal")
            self.execute("PRAGMA synchronous = full")
            _refuse_unless("synchronous", self.execute("PRAGMA synchronous"), 2)
            self.rows("callers.leave_log")

    def _execute_patiently(self, text: str) -> list[tuple[object, ...]]:
        """Execute, waiting for the application's own connection if it holds the lock."""
        for times in itertools.count():
            try:
                return self._cursor.execute(text).fetchall()
            except sqlite3.Error as error:
                if not is_busy(error) or self._is_read_only or not self._busy_wait.wait(times):
                    raise self._translate(error) from error
                if times == _TRIES_BEFORE_CHECK:
                    refuse_deadlock(self._path)
        raise AssertionError

    def _move_log(self) -> None:
        """Checkpoint.  After a failure this connection is not used again: see connection.py."""
        try:
            move_log(self._path, patience_ms=0 if self._busy_wait.is_short else MOVE_MS)
        except WriteLockTimeout:
            self._moves.postpone()
        except StoreUnavailable as error:
            _log.warning("%s", error)
            self.is_alive = False
            self._mark_failed_sync()

    def _translate(self, error: sqlite3.Error) -> Exception:
        if is_busy(error) and self._busy_wait.is_short:
            return Collision("another program writes to the store")
        code = code_of(error)
        if code & 0xFF == sqlite3.SQLITE_IOERR and code not in _READS:
            self._mark_failed_sync()
        if is_damage(error) and self._damage_watch is not None:
            return self._damage_watch.report(error)
        return super()._translate(error)


def open_synced(
    path: Path,
    moves: LogMoveTimer,
    write_lock: WriteLock,
    *,
    patience_ms: int = PATIENCE_MS,
    damage_watch: DamageWatch | None = None,
) -> PlainSqliteDatabase:
    """Open for writing; first move the log that a crash or a failed sync left, and sync it.

    While other stores have the file open, the log is left as it is, unless a sync has failed.  Then
    it is made durable while they keep the file open: the application cannot be asked to close it.
    """
    with opening(write_lock) as is_alone:
        refuse_deadlock(path)
        if is_alone:
            # First: closing the last connection would drop what follows the damage.
            _refuse_damaged_log(path)
        db = PlainSqliteDatabase(
            path, moves, write_lock=write_lock, patience_ms=patience_ms, damage_watch=damage_watch
        )
        try:
            if is_alone or write_lock.has_failed_sync:
                move_log(path, again=True, patience_ms=patience_ms)
                write_lock.clear_failed_sync()
        except BaseException:
            db.abandon()
            raise
        write_lock.admit_others()
        return db


def _refuse_damaged_log(path: Path) -> None:
    """Checks twice: an application may have the file open and restart the log meanwhile."""
    try:
        end = find_log_end(path)
        if end is not None and end.is_damage and find_log_end(path) == end:
            refuse_damaged_log(path, end)
    except OSError as error:
        raise StoreUnavailable(f"cannot read the log of {path}: {error}") from error


def move_log(path: Path, *, again: bool = False, patience_ms: int = MOVE_MS) -> None:
    """Move the log into the database, while one connection keeps all writers out.

    `again`: first write every byte of it again, because it is unknown what was synced.
    Raises WriteLockTimeout if the application writes all the time, and StoreUnavailable.
    """
    try:
        with (
            closing(_connect(path, patience_ms=patience_ms)) as guard,
            closing(_connect(path, patience_ms=patience_ms)) as mover,
        ):
            guard.execute("BEGIN IMMEDIATE")
            if again and log_of(path).exists():
                _sync_again(log_of(path))
            mover.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            guard.execute("ROLLBACK")
    except (sqlite3.Error, OSError) as error:
        if isinstance(error, sqlite3.Error) and is_busy(error):
            raise storage_error(error) from error
        raise StoreUnavailable(f"the log of {path} cannot be moved: {error}") from error


def _connect(path: Path, *, patience_ms: int, read_only: bool = False) -> sqlite3.Connection:
    where = path.absolute().as_uri() + ("?mode=ro" if read_only else "")
    return sqlite3.connect(
        where,
        uri=True,
        timeout=patience_ms / 1000,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=600,
    )


def _cannot_open(path: Path, error: Exception) -> Exception:
    if isinstance(error, sqlite3.Error) and (is_busy(error) or is_damage(error)):
        return storage_error(error)
    return StoreUnavailable(f"cannot open {path}: {error}")


def _refuse_unless(name: str, found: list[tuple[object, ...]], wanted: object) -> None:
    if found[0][0] != wanted:
        raise StoreRefused(f"SQLite's {name} is {found[0][0]!r}; it must be {wanted!r}")


def _sync_again(log: Path) -> None:
    """As in log_sync.py.  SQLite has no locks on this file, so closing it does no harm."""
    with log.open("r+b", buffering=0) as file:
        while part := file.read(_STEP):
            file.seek(-len(part), os.SEEK_CUR)
            file.write(part)
        os.fsync(file.fileno())
