"""Recognises the object that a caller passes as its transaction, by its class.

It imports no library: the caller has imported the one that created the object.
"""

from __future__ import annotations

from typing import Any

from penstock.domain.errors import InvalidRequest

SQLITE3 = "sqlite3.Connection"
PSYCOPG = "psycopg.Connection"
ASYNC_PSYCOPG = "psycopg.AsyncConnection"
PSYCOPG2 = "psycopg2.connection"
ASYNCPG = "asyncpg.Connection"

DJANGO = "django.BaseDatabaseWrapper"

_PLAIN = {SQLITE3, PSYCOPG, PSYCOPG2, DJANGO, "sqlalchemy.Connection", "sqlalchemy.Session"}
_ASYNC = {ASYNC_PSYCOPG, ASYNCPG, "sqlalchemy.AsyncConnection", "sqlalchemy.AsyncSession"}
_ALIASES = {
    "asyncpg.PoolConnectionProxy": ASYNCPG,
    "django.ConnectionProxy": DJANGO,  # django.db.connection
    "sqlalchemy.scoped_session": "sqlalchemy.Session",
    "sqlalchemy.async_scoped_session": "sqlalchemy.AsyncSession",
}
_TOUCH = "SELECT 1"


def plain_connection(tx: Any) -> tuple[str, Any]:
    """The driver's connection behind `tx`, and its kind; SQLAlchemy's transaction has begun."""
    kind = _kind_of(tx)
    if kind in _ASYNC:
        raise InvalidRequest("tx belongs to an event loop: use the asynchronous form")
    if kind == DJANGO:
        return plain_connection(_django_connection(tx))
    if not kind.startswith("sqlalchemy."):
        return kind, tx
    connection = tx.connection() if kind == "sqlalchemy.Session" else tx
    if not connection.in_transaction():
        connection.begin()  # as with the first statement; otherwise commit() would do nothing
    return plain_connection(connection.connection.driver_connection)


async def async_connection(tx: Any) -> tuple[str, Any]:
    kind = _kind_of(tx)
    if kind in _PLAIN:
        raise InvalidRequest("tx does not belong to an event loop: use the synchronous form")
    if not kind.startswith("sqlalchemy."):
        return kind, tx
    connection = await tx.connection() if kind == "sqlalchemy.AsyncSession" else tx
    driver = (await connection.get_raw_connection()).driver_connection
    is_late = _kind_of(driver) == ASYNCPG and not driver.is_in_transaction()
    if is_late or not connection.in_transaction():
        await connection.exec_driver_sql(_TOUCH)  # it begins with the first statement
    return await async_connection(driver)


def _django_connection(tx: Any) -> Any:
    if tx.needs_rollback:
        raise InvalidRequest("tx has failed: it can only be rolled back")
    if not tx.in_atomic_block and tx.get_autocommit():
        raise InvalidRequest("tx has no open transaction: use it inside transaction.atomic()")
    tx.ensure_connection()
    return tx.connection


def _kind_of(tx: Any) -> str:
    for cls in type(tx).__mro__:
        name = f"{cls.__module__.partition('.')[0]}.{cls.__qualname__}"
        kind = _ALIASES.get(name, name)
        if kind in _PLAIN or kind in _ASYNC:
            return kind
    known = ", ".join(sorted({*_PLAIN, *_ASYNC, "django.db.connection"} - {DJANGO}))
    cls = type(tx)
    raise InvalidRequest(f"tx is a {cls.__module__}.{cls.__qualname__}; supported are {known}")
