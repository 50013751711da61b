"""The PostgreSQL drivers that a caller may use: psycopg, psycopg2 and asyncpg.

None is imported before a caller passes one of its connections.  Our cursors ignore the caller's row
factory and leave no prepared statement behind.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from functools import cache
from typing import Any

from penstock.domain.errors import InvalidRequest, StoreUnavailable
from penstock.store.callers.postgres_caller import Values
from penstock.store.database import Row
from penstock.store.postgres.libpq import ServerError
from penstock.store.postgres.statements import encode

# Called in another thread: runs a coroutine on the caller's loop and waits for it.
Wait = Callable[[Coroutine[Any, Any, Any]], Any]

_IDLE = 0  # libpq's status of a transaction, the same in psycopg and psycopg2
_NUMBER = re.compile(r"\$(\d+)")
_TO_JSON = re.compile(r"CAST\((\$\d+) AS json\)")
_AUTOCOMMIT = "tx has no open transaction: the connection is in autocommit mode"


class _CursorDriver(ABC):
    _cursor: Any

    @abstractmethod
    def _execute(self, text: str, values: Values) -> None: ...

    def rows(self, text: str, values: Values) -> list[Row]:
        self._execute(text, values)
        return self._cursor.fetchall() if self._cursor.description else []

    def count(self, text: str, values: Values) -> int:
        self._execute(text, values)
        return int(max(self._cursor.rowcount, 0))


class PsycopgDriver(_CursorDriver):
    def __init__(self, connection: Any) -> None:
        from psycopg import RawCursor
        from psycopg.rows import tuple_row

        self._connection = connection
        self._cursor: Any = RawCursor(connection, row_factory=tuple_row)

    def refuse_without_transaction(self) -> None:
        _refuse_autocommit(self._connection.autocommit, self._connection.info.transaction_status)

    def _execute(self, text: str, values: Values) -> None:
        from psycopg import Error

        try:
            self._cursor.execute(text.encode(), _texts(values), prepare=False)
        except Error as error:
            raise _server_error(error, error.sqlstate) from error


class AsyncPsycopgDriver:
    def __init__(self, connection: Any, wait: Wait) -> None:
        from psycopg import AsyncRawCursor
        from psycopg.rows import tuple_row

        self._connection = connection
        self._wait = wait
        self._cursor: Any = AsyncRawCursor(connection, row_factory=tuple_row)

    def refuse_without_transaction(self) -> None:
        _refuse_autocommit(self._connection.autocommit, self._connection.info.transaction_status)

    def rows(self, text: str, values: Values) -> list[Row]:
        found: list[Row] = self._wait(self._execute(text, values))
        return found

    def count(self, text: str, values: Values) -> int:
        self._wait(self._execute(text, values))
        return int(max(self._cursor.rowcount, 0))

    async def _execute(self, text: str, values: Values) -> list[Row]:
        from psycopg import Error

        try:
            await self._cursor.execute(text.encode(), _texts(values), prepare=False)
            return await self._cursor.fetchall() if self._cursor.description else []
        except Error as error:
            raise _server_error(error, error.sqlstate) from error


class Psycopg2Driver(_CursorDriver):
    """psycopg2 has its own parameter style, and inserts the values into the text itself."""

    def __init__(self, connection: Any) -> None:
        from psycopg2.extensions import cursor

        self._connection = connection
        self._cursor: Any = None if connection.closed else cursor(connection)

    def refuse_without_transaction(self) -> None:
        if self._cursor is None:
            raise StoreUnavailable("tx is closed")
        _refuse_autocommit(self._connection.autocommit, self._connection.get_transaction_status())

    def _execute(self, text: str, values: Values) -> None:
        from psycopg2 import Error

        named = {f"p{i}": value for i, value in enumerate(_texts(values), start=1)}
        try:
            self._cursor.execute(_with_named_parameters(text), named)
        except Error as error:
            raise _server_error(error, error.pgcode) from error


class AsyncpgDriver:
    """asyncpg asks the server for the types of parameters and encodes them itself."""

    def __init__(self, connection: Any, wait: Wait) -> None:
        self._connection = connection
        self._wait = wait

    def refuse_without_transaction(self) -> None:
        if self._connection.is_closed():
            raise StoreUnavailable("tx is closed")
        _refuse_autocommit(not self._connection.is_in_transaction(), _IDLE)

    def rows(self, text: str, values: Values) -> list[Row]:
        return [tuple(row) for row in self._run("fetch", text, values)]

    def count(self, text: str, values: Values) -> int:
        status: str = self._run("execute", text, values)
        return int(status.rpartition(" ")[2]) if status[-1:].isdecimal() else 0

    def _run(self, what: str, text: str, values: Values) -> Any:
        encode(values)  # refuses texts that the server cannot store
        plain = [str.__str__(v) if isinstance(v, str) else v for v in values]
        return self._wait(self._call(what, _without_codecs(text), plain))

    async def _call(self, what: str, text: str, values: list[Any]) -> Any:
        from asyncpg import InterfaceError, PostgresError

        try:
            return await getattr(self._connection, what)(text, *values)
        except PostgresError as error:
            raise _server_error(error, error.sqlstate) from error
        except (InterfaceError, OSError) as error:
            raise StoreUnavailable(f"{type(error).__name__}: {error}") from error


@cache
def _with_named_parameters(text: str) -> str:
    """The statement with psycopg2's parameter style."""
    return _NUMBER.sub(r"%(p\1)s", text.replace("%", "%%"))


@cache
def _without_codecs(text: str) -> str:
    """Bypass the caller's own JSON codec: our values are texts already."""
    return _TO_JSON.sub(r"CAST(CAST(\1 AS text) AS json)", text)


def _texts(values: Values) -> list[str | None]:
    """Values as texts without types: the server knows the columns."""
    return [None if value is None else value.decode() for value in encode(values)]


def _refuse_autocommit(is_autocommit: bool, status: int) -> None:
    if is_autocommit and status == _IDLE:
        raise InvalidRequest(_AUTOCOMMIT)


def _server_error(error: Exception, sqlstate: str | None) -> ServerError:
    return ServerError(sqlstate or "", str(error).strip().partition("\n")[0])
