"""A connection to a backend, used by one thread at a time.  Queries are named."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, Protocol

from penstock.domain.errors import StoreUnavailable
from penstock.store.queries import Queries

Row = tuple[Any, ...]


class Collision(Exception):
    """Two transactions collided.  Nothing was kept; a retry may succeed."""


class RowsChanged(Collision):
    """Another transaction has changed the rows that this one was about to change: retry at once.

    The limit of such retries is high, as each means that another transaction made progress.
    """


class NotADatabase(StoreUnavailable):
    """Not a SQLite file.  Refused when a store is opened; a running store may recover."""


class WriteLockTimeout(StoreUnavailable):
    """Another writer has held the store's lock for too long.  The connection itself is fine."""


def stored_value(value: object) -> object:
    """A value of a record as it is stored: enums by their values, booleans as 0 or 1."""
    if isinstance(value, Enum):
        return value.value
    return int(value) if isinstance(value, bool) else value


class QueryResult(Protocol):
    def rows(self) -> list[Row]: ...


class ReadyRows:
    """Rows that were read at once: without a network, reading them later gains nothing."""

    __slots__ = ("_rows",)

    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows

    def rows(self) -> list[Row]:
        return self._rows


class Database(Protocol):
    dialect: str
    is_shared: bool  # other nodes write, too, so rows that must not change have to be locked
    commits_schema: bool  # a change of the schema commits the transaction
    finds_deadlocks: bool  # detects that the calling thread holds the lock it waits for

    @property
    def is_alive(self) -> bool:
        """False: the connection was lost while idle."""
        ...

    def text(self, name: str, **fill: object) -> str:
        """The text of a query, to be inserted into another."""
        ...

    def rows(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> list[Row]:
        """Run a query by name and return all its rows."""
        ...

    def ask(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> QueryResult:
        """Run a query whose rows are read later: several may share one round trip."""
        ...

    def post(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> None:
        """Run a statement without waiting; a later call or the commit raises its error."""
        ...

    def run(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> int:
        """Run a statement by name and return the number of changed rows."""
        ...

    def insert(self, name: str, rows: Sequence[Row], **fill: object) -> list[Row]:
        """Insert rows, whose values are in the order of the statement's parameters."""
        ...

    def update(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        """Run one statement for each of the rows."""
        ...

    def script(self, text: str) -> None:
        """Run the statements of a migration."""
        ...

    def acquire_write_lock(self, *, wait: bool) -> bool:
        """On a single-writer backend: acquire the write lock until the end of the next transaction.

        False if it is taken and `wait` is False.  After True, check `is_alive`, which may have
        become False.  `begin` acquires the lock by itself.
        """
        ...

    def release_write_lock(self) -> None: ...

    def begin(self, *, durable: bool) -> None:
        """Start a transaction; `durable`: its commit returns only when it is on the disk."""
        ...

    def back_off(self, times: int) -> None:
        """After a collision and outside a transaction: let the other transactions go first."""
        ...

    def raise_time_limits(self) -> None:
        """Raise the time limits: the rest of this transaction may take minutes."""
        ...

    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def close(self) -> None: ...

    def abandon(self) -> None:
        """Close after a storage error, without writing anything this connection has cached."""
        ...


class DirectDatabase(Protocol):
    """Base of databases that run each statement at once instead of sending several together."""

    dialect: str
    _queries: Queries

    def text(self, name: str, **fill: object) -> str:
        return self._queries.text(name, **fill)

    def rows(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> list[Row]:
        """Run a query by name and return all its rows."""
        ...

    def ask(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> ReadyRows:
        return ReadyRows(self.rows(name, params, **fill))

    def post(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> None:
        self.rows(name, params, **fill)

    def back_off(self, times: int) -> None:
        """Nothing to do: SQLite has one writer, and a caller's transaction cannot start again."""
        return

    def raise_time_limits(self) -> None:
        """Nothing to do: statements have no time limit, or a caller has set it."""
        return
