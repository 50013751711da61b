"""A SQLite file that the application has open as well, through Python's sqlite3.

Two copies of SQLite in one process do not see each other's locks: the system keeps them by process,
and whoever closes the file drops those of the other.  Both would write at the same time.  So a file
that is shared with an application is opened with the copy that the application uses, and not with
apsw's.  Which files these are the file itself says: it has no checksums, which sqlite3 would not
write.

That copy may be older than 3.51.3, and then one that moves the log while another one writes can
corrupt the database.  So here the log is moved only while nobody can write; see `move_log`.

Those who write through a store take turns (turns.py).  In its turn a writer can still meet the
application's own connection, and waits for it: not in SQLite, which could not be told to wait on a
thread and not on an event loop.
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
from penstock.store.damage.log_damage import SYNC_AFTER, look_behind, refuse_damaged_log
from penstock.store.database import Collision, Occupied
from penstock.store.sqlite import checksums
from penstock.store.sqlite.busy_wait import Patience
from penstock.store.sqlite.deadlock import refuse_deadlock
from penstock.store.sqlite.file_header import reserved_bytes
from penstock.store.sqlite.locked_transaction import InTurn
from penstock.store.sqlite.log_sync import log_of
from penstock.store.sqlite.sqlite3_database import (
    Sqlite3Database,
    code_of,
    is_busy,
    is_damage,
    refuse_old_sqlite,
    storage_error,
)
from penstock.store.sqlite.write_lock import PATIENCE_MS, Turns

_log = logging.getLogger("penstock.store")

CACHE_KIB = 32 * 1024
_STEP = 1 << 20
COMMITS_PER_MOVE = 1_000  # then the log goes into the database
CLOSING_MS = 2_000  # to close in turn only spares the next one some work
MOVE_MS = 1_000  # … unless the application writes for longer than that: then after the next one
_TRIES_BEFORE_CHECK = 10  # some 50 ms: most writers are done by then
_READS = (sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ)


def is_plain(path: Path, *, new_ones: bool = False) -> bool:
    """Without checksums.  `new_ones`: what to say of a file that is not there yet."""
    reserved = reserved_bytes(path)
    return new_ones if reserved is None else reserved != checksums.RESERVED_BYTES


class LogMoves:
    """Counts commits, ours and those of callers, and says when it is time."""

    def __init__(self) -> None:
        self._commits = itertools.count(1)
        self._is_late = False

    def is_due(self) -> bool:
        is_late, self._is_late = self._is_late, False
        return next(self._commits) % COMMITS_PER_MOVE == 0 or is_late

    def put_off(self) -> None:
        """It did not work: after the next commit, then."""
        self._is_late = True


class PlainSqliteDatabase(InTurn, Sqlite3Database):
    finds_deadlocks = True

    def __init__(
        self,
        path: Path,
        moves: LogMoves,
        *,
        read_only: bool = False,
        turns: Turns | None = None,
        patience_ms: int = PATIENCE_MS,
        watch: DamageWatch | None = None,
    ) -> None:
        self._watch = watch
        self.is_alive = True
        self._path = path
        self._moves = moves
        self._is_read_only = read_only
        self._is_synced = True
        self._unsynced = 0  # commits since the last one that was synced
        self._version: object = None
        self._turns = turns
        self._patience = Patience(patience_ms)
        try:
            # Who writes waits in this class, and who reads in SQLite.
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

    def begin(self, *, durable: bool) -> None:
        if self._is_read_only:
            self.execute("BEGIN")
            return
        self._be_in_turn()
        durable = durable or self._unsynced >= SYNC_AFTER
        try:
            if durable != self._is_synced:
                self.execute(f"PRAGMA synchronous = {'full' if durable else 'normal'}")
                self._is_synced = durable
            self._execute_patiently("BEGIN IMMEDIATE")
        except BaseException:
            self.give_turn_back()
            raise

    def commit(self) -> None:
        self.execute("COMMIT")
        self._unsynced = 0 if self._is_synced else self._unsynced + 1
        if self._moves.is_due():
            self._move_log()
        self.give_turn_back()

    def rollback(self) -> None:
        try:
            if self._db.in_transaction:
                self.execute("ROLLBACK")
        finally:
            self.give_turn_back()

    def has_changed(self) -> bool:
        """May anybody have committed since we were asked last?"""
        before, self._version = self._version, self.execute("PRAGMA data_version")
        return before != self._version

    def close(self) -> None:
        """The last one to close moves the log: in its turn, as others may be about to open."""
        with suppress(Occupied):
            self.take_turn(wait=True, patience_ms=CLOSING_MS)
        try:
            self._db.close()
        finally:
            self.give_turn_back()

    def abandon(self) -> None:
        try:
            self._db.close()
        finally:
            self.give_turn_back()

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
        """Wait for the application's own connection, if that is in the way."""
        for times in itertools.count():
            try:
                return self._cursor.execute(text).fetchall()
            except sqlite3.Error as error:
                if not is_busy(error) or self._is_read_only or not self._patience.wait(times):
                    raise self._meaning(error) from error
                if times == _TRIES_BEFORE_CHECK:
                    refuse_deadlock(self._path)
        raise AssertionError

    def _move_log(self) -> None:
        """The commit before it stands.  Those after it may build on what is not on the disk."""
        try:
            move_log(self._path, patience_ms=0 if self._patience.is_short else MOVE_MS)
        except Occupied:
            self._moves.put_off()
        except StoreUnavailable as error:
            _log.warning("%s", error)
            self.is_alive = False
            self._doubt()

    def _meaning(self, error: sqlite3.Error) -> Exception:
        if is_busy(error) and self._patience.is_short:
            return Collision("another program writes to the store")
        code = code_of(error)
        if code & 0xFF == sqlite3.SQLITE_IOERR and code not in _READS:
            self._doubt()
        if is_damage(error) and self._watch is not None:
            return self._watch.met(error)
        return super()._meaning(error)


def open_settled(
    path: Path,
    moves: LogMoves,
    turns: Turns,
    *,
    patience_ms: int = PATIENCE_MS,
    watch: DamageWatch | None = None,
) -> PlainSqliteDatabase:
    """Open for writing: what a crash or a failed sync left is in the database, and durable.

    While other stores have the file open the log is left as it is, unless a sync has failed.  Then
    it is settled beside them: the application has it open, and cannot be asked to let go.
    """
    turns.take()
    try:
        refuse_deadlock(path)
        is_alone = turns.come_in()
        if is_alone:
            # First: the last connection that is closed would drop what follows the damage.
            _refuse_damaged_log(path)
        db = PlainSqliteDatabase(path, moves, turns=turns, patience_ms=patience_ms, watch=watch)
        try:
            if is_alone or turns.is_in_doubt:
                move_log(path, again=True, patience_ms=patience_ms)
                turns.trust()
        except BaseException:
            db.abandon()
            raise
        turns.stay()
        return db
    except BaseException:
        turns.leave()
        raise
    finally:
        turns.give_back()


def _refuse_damaged_log(path: Path) -> None:
    """Twice: an application may have the file open, and begin the log anew meanwhile."""
    try:
        end = look_behind(path)
        if end is not None and end.is_damage and look_behind(path) == end:
            refuse_damaged_log(path, end)
    except OSError as error:
        raise StoreUnavailable(f"cannot read the log of {path}: {error}") from error


def move_log(path: Path, *, again: bool = False, patience_ms: int = MOVE_MS) -> None:
    """Move what is in the log into the database, while one connection keeps all writers out.

    `again`: write every byte of it once more before, because nobody knows what was synced.
    Raises Occupied if the application writes all the time, and StoreUnavailable.
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
        raise StoreRefused(f"SQLite's {name} is {found[0][0]!r} where {wanted!r} was asked for")


def _sync_again(log: Path) -> None:
    """As store/sqlite/log_sync.py has it.  No locks are on this file, so it may be closed again."""
    with log.open("r+b", buffering=0) as file:
        while part := file.read(_STEP):
            file.seek(-len(part), os.SEEK_CUR)
            file.write(part)
        os.fsync(file.fileno())
