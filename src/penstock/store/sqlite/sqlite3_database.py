"""SQLite through Python's own sqlite3: statements on a connection, ours or a caller's."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from penstock.domain.errors import InvalidRequest, PenstockError, StoreDamaged, StoreUnavailable
from penstock.store.damage.log_damage import recovery_advice
from penstock.store.database import Collision, DirectDatabase, NotADatabase, Row, WriteLockTimeout
from penstock.store.queries import insert_parts, queries_of

OLDEST = (3, 38, 0)  # the first with the ->> operator for JSON
_NO_TABLE = "no such table"  # of a day that another process has dropped


class Sqlite3Database(DirectDatabase):
    """Base of all connections through sqlite3: everything but transactions."""

    dialect = "sqlite"
    is_shared = False
    commits_schema = False
    finds_deadlocks = False
    is_alive = True

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        # A plain cursor, whatever row factory the connection's owner has set.
        self._cursor = sqlite3.Cursor(connection)
        self._cursor.row_factory = None
        self._queries = queries_of(self.dialect)

    def rows(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> list[Row]:
        text = self._queries.text(name, **fill)
        return self.execute(text, params or {}) if text else []

    def run(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> int:
        self.rows(name, params, **fill)
        return max(self._cursor.rowcount, 0)

    def insert(self, name: str, rows: Sequence[Row], **fill: object) -> list[Row]:
        text = self._queries.text(name, **fill)
        return [
            row
            for statement_text, values in insert_parts(text, rows)
            for row in self.execute(statement_text, values)
        ]

    def update(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        try:
            self._cursor.executemany(self._queries.text(name), rows)
        except sqlite3.Error as error:
            raise self._translate(error) from error

    def script(self, text: str) -> None:
        # Not executescript(): it commits before it begins.
        for statement in _statements(text):
            self.execute(statement)

    def execute(self, text: str, params: Iterable[Any] = ()) -> list[Row]:
        try:
            return self._cursor.execute(text, params).fetchall()  # type: ignore[arg-type]
        except sqlite3.Error as error:
            raise self._translate(error) from error

    def _translate(self, error: sqlite3.Error) -> Exception:
        """The error for the caller."""
        if isinstance(error, sqlite3.OperationalError) and _NO_TABLE in str(error):
            return Collision(str(error))
        return storage_error(error)


def refuse_old_sqlite() -> None:
    if sqlite3.sqlite_version_info < OLDEST:
        raise InvalidRequest(
            f"this Python's SQLite is {sqlite3.sqlite_version}; 3.38 or later is needed"
        )


def storage_error(error: sqlite3.Error) -> PenstockError:
    """A violated constraint is the fault of one request; anything else may be the storage's."""
    if is_busy(error):
        return WriteLockTimeout(
            "another connection has held SQLite's write lock for too long; if it is a transaction"
            " of the caller's own, pass it as tx=, or call this after its commit"
        )
    if is_damage(error):
        return StoreDamaged(f"the store is damaged: {error}. {recovery_advice()}")
    kind: type[PenstockError] = StoreUnavailable
    if code_of(error) == sqlite3.SQLITE_NOTADB:
        kind = NotADatabase
    if isinstance(error, sqlite3.IntegrityError):
        kind = PenstockError
    if isinstance(error, sqlite3.ProgrammingError):  # closed, or it belongs to another thread
        kind = InvalidRequest
    return kind(f"{type(error).__name__}: {error}")


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection holds the lock."""
    return code_of(error) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_damage(error: sqlite3.Error) -> bool:
    """Whether a page is malformed."""
    return code_of(error) & 0xFF == sqlite3.SQLITE_CORRUPT


def code_of(error: sqlite3.Error) -> int:
    """SQLite's extended code; 0 if the error is sqlite3's own."""
    return int(getattr(error, "sqlite_errorcode", 0))


def _statements(text: str) -> Iterable[str]:
    statement = ""
    for piece in text.split(";"):
        statement += piece + ";"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
