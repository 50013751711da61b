"""A SQLite file that the application has open as well, through Python's sqlite3.

Two copies of SQLite in one process do not see each other's locks: the system keeps them by process,
and whoever closes the file drops those of the other.  Both would write at the same time.  So a file
that is shared with an application is opened with the copy that the application uses, and not with
apsw's.  Which files these are the file itself says: it has no checksums, which sqlite3 would not
write.

That copy may be older than 3.51.3, and then one that moves the log while another one writes can
corrupt the database.  So here the log is moved only while nobody can write; see `move_log`.
"""

from __future__ import annotations

import itertools
import logging
import os
import sqlite3
from contextlib import closing
from pathlib import Path

from penstock.domain.errors import StoreRefused, StoreUnavailable
from penstock.store import checksums
from penstock.store.file_header import reserved_bytes
from penstock.store.sqlite3_database import Sqlite3Database, refuse_old_sqlite
from penstock.store.sqlite_log import BUSY_MS, log_of

_log = logging.getLogger("penstock.store")

CACHE_KIB = 32 * 1024
_STEP = 1 << 20
COMMITS_PER_MOVE = 1_000  # then the log goes into the database


def is_plain(path: Path, *, new_ones: bool = False) -> bool:
    """Without checksums.  `new_ones`: what to say of a file that is not there yet."""
    reserved = reserved_bytes(path)
    return new_ones if reserved is None else reserved != checksums.RESERVED_BYTES


class LogMoves:
    """Counts commits, ours and those of callers, and says when it is time."""

    def __init__(self) -> None:
        self._commits = itertools.count(1)

    def is_due(self) -> bool:
        return next(self._commits) % COMMITS_PER_MOVE == 0


class PlainSqliteDatabase(Sqlite3Database):
    def __init__(self, path: Path, moves: LogMoves, *, read_only: bool = False) -> None:
        self._path = path
        self._moves = moves
        self._is_read_only = read_only
        self._is_synced = True
        try:
            super().__init__(_connect(path, read_only=read_only))
            self._set_up()
        except (sqlite3.Error, OSError) as error:
            raise StoreUnavailable(f"cannot open {path}: {error}") from error

    def begin(self, *, durable: bool) -> None:
        if self._is_read_only:
            self.execute("BEGIN")
            return
        if durable != self._is_synced:
            self.execute(f"PRAGMA synchronous = {'full' if durable else 'normal'}")
            self._is_synced = durable
        self.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self.execute("COMMIT")
        if self._moves.is_due():
            move_log(self._path)

    def rollback(self) -> None:
        if self._db.in_transaction:
            self.execute("ROLLBACK")

    def close(self) -> None:
        self._db.close()

    def abandon(self) -> None:
        self._db.close()

    def _set_up(self) -> None:
        refuse_old_sqlite()
        self.execute(f"PRAGMA cache_size = {-CACHE_KIB}")
        self.execute("PRAGMA temp_store = memory")
        if not self._is_read_only:
            _refuse_unless("journal_mode", self.execute("PRAGMA journal_mode = wal"), "wal")
            self.execute("PRAGMA synchronous = full")
            _refuse_unless("synchronous", self.execute("PRAGMA synchronous"), 2)
            self.rows("callers.leave_log")


def open_settled(path: Path, moves: LogMoves) -> PlainSqliteDatabase:
    """Open for writing: what a crash left is in the database, and durable."""
    db = PlainSqliteDatabase(path, moves)
    try:
        move_log(path, again=True)
    except BaseException:
        db.abandon()
        raise
    return db


def move_log(path: Path, *, again: bool = False) -> None:
    """Move what is in the log into the database, while one connection keeps all writers out.

    `again`: write every byte of it once more before, because nobody knows what was synced.
    """
    try:
        with closing(_connect(path)) as guard, closing(_connect(path)) as mover:
            guard.execute("BEGIN IMMEDIATE")
            if again and log_of(path).exists():
                _sync_again(log_of(path))
            mover.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            guard.execute("ROLLBACK")
    except (sqlite3.Error, OSError) as error:
        if again:
            raise StoreUnavailable(f"the log of {path} cannot be moved: {error}") from error
        _log.warning("the log could not be moved into the database: %s", error)


def _connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    where = path.absolute().as_uri() + ("?mode=ro" if read_only else "")
    return sqlite3.connect(
        where,
        uri=True,
        timeout=BUSY_MS / 1000,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=600,
    )


def _refuse_unless(name: str, found: list[tuple[object, ...]], wanted: object) -> None:
    if found[0][0] != wanted:
        raise StoreRefused(f"SQLite's {name} is {found[0][0]!r} where {wanted!r} was asked for")


def _sync_again(log: Path) -> None:
    """As store/sqlite_log.py has it.  No locks are on this file, so it may be closed again."""
    with log.open("r+b", buffering=0) as file:
        while part := file.read(_STEP):
            file.seek(-len(part), os.SEEK_CUR)
            file.write(part)
        os.fsync(file.fileno())
