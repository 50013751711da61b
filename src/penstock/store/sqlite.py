"""SQLite through apsw, set up so that a commit is on the disk before anybody hears of it.

apsw's wheel carries a current SQLite: those before 3.51.3 can corrupt a database when a WAL is
reset while another connection writes, and the system's is usually older than that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import apsw

from penstock.domain.errors import PenstockError, StoreRefused, StoreUnavailable
from penstock.store import checksums
from penstock.store.database import Row
from penstock.store.queries import Queries

OLDEST_SQLITE = 3_051_003
CHECKPOINT_PAGES = 10_000  # measured: p99 2.8 ms instead of 6.1 with the default 1,000
CACHE_KIB = 32 * 1024
BUSY_MS = 10_000
_CHUNKS = (512, 256, 128, 64)  # rows; below the last there is a statement for each number of rows

_PARAM = re.compile(r":(\w+)")
_VALUES = re.compile(r"VALUES\s*(\(.*?\))", re.DOTALL)


class Found:
    """Rows that are there already: nothing travels, so nothing is gained by waiting."""

    __slots__ = ("_rows",)

    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows

    def rows(self) -> list[Row]:
        return self._rows


class SqliteDatabase:
    dialect = "sqlite"
    is_shared = False
    is_alive = True

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self._queries = Queries(self.dialect)
        self._inserts: dict[tuple[str, int], str] = {}
        self._is_read_only = read_only
        self._is_synced = True
        try:
            self._db = self._open(path, read_only)
        except (apsw.Error, OSError) as error:
            raise StoreUnavailable(f"cannot open {path}: {error}") from error
        self._cursor = self._db.cursor()

    def _open(self, path: Path, read_only: bool) -> apsw.Connection:
        refuse_old_sqlite(apsw.SQLITE_VERSION_NUMBER)
        is_checked = checksums.turn_on()
        flags = apsw.SQLITE_OPEN_READONLY if read_only else 0
        if not read_only:
            flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        # Statements for every number of rows must fit, or inserts are prepared anew each time.
        db = apsw.Connection(str(path), flags=flags, statementcachesize=600)
        db.set_busy_timeout(BUSY_MS)
        # Without this, SQLite plans a statement anew whenever a bound value changes: measured,
        # a claim costs 100 µs instead of 15.
        db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        db.pragma("cache_size", -CACHE_KIB)
        db.pragma("temp_store", "memory")
        if not read_only:
            if is_checked and not path.stat().st_size:
                db.reserve_bytes("main", checksums.RESERVED_BYTES)
            _make_durable(db, path)
        return db

    def text(self, name: str, **fill: object) -> str:
        return self._queries.text(name, **fill)

    def rows(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> list[Row]:
        try:
            return self._cursor.execute(self._queries.text(name, **fill), params or {}).fetchall()
        except apsw.Error as error:
            raise storage_error(error) from error

    def ask(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> Found:
        return Found(self.rows(name, params, **fill))

    def post(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> None:
        self.rows(name, params, **fill)

    def run(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> int:
        self.rows(name, params, **fill)
        return self._db.changes()

    def insert(self, name: str, rows: Sequence[Row], **fill: object) -> list[Row]:
        back: list[Row] = []
        start = 0
        text = self._queries.text(name, **fill)
        try:
            while start < len(rows):
                # One step for many rows: each step gives up the interpreter lock once.
                part = rows[start : start + _chunk(len(rows) - start)]
                values = list(chain.from_iterable(part))
                back += self._cursor.execute(self._insert_text(text, len(part)), values).fetchall()
                start += len(part)
        except apsw.Error as error:
            raise storage_error(error) from error
        return back

    def update(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        try:
            self._cursor.executemany(self._queries.text(name), rows)
        except apsw.Error as error:
            raise storage_error(error) from error

    def script(self, text: str) -> None:
        try:
            self._cursor.execute(text).fetchall()
        except apsw.Error as error:
            raise storage_error(error) from error

    def begin(self, *, durable: bool) -> None:
        if self._is_read_only:
            self._execute("BEGIN")
            return
        if durable != self._is_synced:
            # NORMAL does not wait for the disk at a commit; the next FULL one syncs it too.
            self._db.pragma("synchronous", "full" if durable else "normal")
            self._is_synced = durable
        self._execute("BEGIN IMMEDIATE")

    def step_back(self, times: int) -> None:
        """Nobody else is there."""

    def be_patient(self) -> None:
        pass

    def commit(self) -> None:
        self._execute("COMMIT")

    def rollback(self) -> None:
        if self._db.in_transaction:
            self._execute("ROLLBACK")

    def settle(self) -> None:
        """Move the log into the database, synced: what a crash left is durable from here on."""
        try:
            self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError:
            pass  # another process reads; its log is settled by the next one
        except apsw.Error as error:
            raise storage_error(error) from error

    def close(self) -> None:
        self._db.close()

    def abandon(self) -> None:
        """Close without touching the files: after a failed sync, memory and disk may differ.

        The next connection reads the log anew and believes only frames whose checksums hold.
        """
        try:
            self._db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            self._db.close(True)
        except apsw.Error:
            pass

    @property
    def connection(self) -> apsw.Connection:
        return self._db

    def _execute(self, text: str) -> None:
        try:
            self._cursor.execute(text)
        except apsw.Error as error:
            raise storage_error(error) from error

    def _insert_text(self, text: str, count: int) -> str:
        """The statement for that many rows, with parameters by position."""
        key = (text, count)
        if key not in self._inserts:
            plain = _PARAM.sub("?", text)
            match = _VALUES.search(plain)
            if match is None:
                raise ValueError(f"not an insert of values: {text}")
            many = ", ".join([match[1]] * count)
            self._inserts[key] = plain[: match.start(1)] + many + plain[match.end(1) :]
        return self._inserts[key]


def _chunk(count: int) -> int:
    return next((chunk for chunk in _CHUNKS if chunk <= count), count)


def _make_durable(db: apsw.Connection, path: Path) -> None:
    refuse_unsafe("journal_mode", db.pragma("journal_mode", "wal"), "wal")
    db.pragma("synchronous", "full")
    refuse_unsafe("synchronous", db.pragma("synchronous"), 2)
    db.pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
    checksums.look_at_log(db, path)


def refuse_old_sqlite(version: int) -> None:
    if version < OLDEST_SQLITE:
        raise StoreRefused(f"SQLite {version} can corrupt a WAL; 3.51.3 or later is needed")


def refuse_unsafe(name: str, found: object, wanted: object) -> None:
    """Settings can fail silently; without this one an acknowledged message could be lost."""
    if found != wanted:
        raise StoreRefused(f"SQLite's {name} is {found!r} where {wanted!r} was asked for")


def storage_error(error: apsw.Error) -> PenstockError:
    """A broken rule is the fault of one request; anything else may be the storage's."""
    kind = PenstockError if isinstance(error, apsw.ConstraintError) else StoreUnavailable
    return kind(f"{type(error).__name__}: {error}")
