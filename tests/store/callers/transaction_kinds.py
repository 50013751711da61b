"""The kinds of transaction that an application may have of its own, all used alike.

Each is an application with one connection and a table `orders`; what belongs to an event loop is
driven by one that stands still between the steps of a test.
"""

from __future__ import annotations

import asyncio
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import asyncpg
import psycopg
import psycopg2
import pytest
from sqlalchemy import Connection, create_engine
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, create_async_engine
from sqlalchemy.orm import Session as OrmSession
from sqlalchemy.pool import NullPool

from penstock.domain.errors import PenstockError
from penstock.domain.message.draft import NewMessage
from penstock.domain.message.lease import LeaseAct
from penstock.ports.store import Acted, Sent, Session, Store

T = TypeVar("T")

ORDERS = "CREATE TABLE orders (name text)"
ADD = "INSERT INTO orders (name) VALUES ('{}')"
LOOK = "SELECT name FROM orders ORDER BY name"


class CallerTransaction(Protocol):
    def run(self, statement: str) -> list[tuple[Any, ...]]: ...
    def send(self, store: Store, new: Sequence[NewMessage]) -> list[Sent | PenstockError]: ...
    def act(self, store: Store, acts: Sequence[LeaseAct]) -> list[Acted | PenstockError]: ...
    def write(self, store: Store, what: Callable[[Session], T]) -> T: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def close(self) -> None: ...


class Plain:
    """A connection with cursor(), commit() and rollback()."""

    def __init__(self, tx: Any) -> None:
        self.tx = tx

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        cursor = self.tx.cursor()
        cursor.execute(statement)
        return list(cursor.fetchall()) if cursor.description else []

    def send(self, store: Store, new: Sequence[NewMessage]) -> list[Sent | PenstockError]:
        return store.send_in(self.tx, new)

    def act(self, store: Store, acts: Sequence[LeaseAct]) -> list[Acted | PenstockError]:
        return store.act_in(self.tx, acts)

    def write(self, store: Store, what: Callable[[Session], T]) -> T:
        return store.write_in(self.tx, what)

    def commit(self) -> None:
        self.tx.commit()

    def rollback(self) -> None:
        self.tx.rollback()

    def close(self) -> None:
        self.tx.close()


class Alchemy(Plain):
    """A Connection or Session of SQLAlchemy."""

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        held = self.tx.connection() if isinstance(self.tx, OrmSession) else self.tx
        found = held.exec_driver_sql(statement)
        return [tuple(row) for row in found] if found.returns_rows else []


class OnALoop(ABC):
    """Base of the asynchronous ones."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        self.runner = asyncio.Runner()
        self.tx = self.runner.run(connect())

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        return self.runner.run(self._run(statement))

    def send(self, store: Store, new: Sequence[NewMessage]) -> list[Sent | PenstockError]:
        return self.runner.run(store.send_in_async(self.tx, new))

    def act(self, store: Store, acts: Sequence[LeaseAct]) -> list[Acted | PenstockError]:
        return self.runner.run(store.act_in_async(self.tx, acts))

    def write(self, store: Store, what: Callable[[Session], T]) -> T:
        return self.runner.run(store.write_in_async(self.tx, what))

    def commit(self) -> None:
        self.runner.run(self.tx.commit())

    def rollback(self) -> None:
        self.runner.run(self.tx.rollback())

    def close(self) -> None:
        self.runner.run(self.tx.close())
        self.runner.close()

    @abstractmethod
    async def _run(self, statement: str) -> list[tuple[Any, ...]]: ...


class AsyncPsycopg(OnALoop):
    async def _run(self, statement: str) -> list[tuple[Any, ...]]:
        cursor = await self.tx.execute(statement)
        return await cursor.fetchall() if cursor.description else []


class Asyncpg(OnALoop):
    """Has transactions only as objects: one begins with the first call after a commit."""

    current: Any = None

    async def _run(self, statement: str) -> list[tuple[Any, ...]]:
        await self._begin()
        return [tuple(row) for row in await self.tx.fetch(statement)]

    def send(self, store: Store, new: Sequence[NewMessage]) -> list[Sent | PenstockError]:
        self.runner.run(self._begin())
        return super().send(store, new)

    def act(self, store: Store, acts: Sequence[LeaseAct]) -> list[Acted | PenstockError]:
        self.runner.run(self._begin())
        return super().act(store, acts)

    def write(self, store: Store, what: Callable[[Session], T]) -> T:
        self.runner.run(self._begin())
        return super().write(store, what)

    def commit(self) -> None:
        self._end("commit")

    def rollback(self) -> None:
        self._end("rollback")

    def _end(self, how: str) -> None:
        if self.current is not None:
            self.runner.run(getattr(self.current, how)())
            self.current = None

    async def _begin(self) -> None:
        if self.current is None:
            self.current = self.tx.transaction()
            await self.current.start()


class AsyncAlchemy(OnALoop):
    def __init__(self, connect: Callable[[], Any], engine: Any) -> None:
        super().__init__(connect)
        self._engine = engine

    async def _run(self, statement: str) -> list[tuple[Any, ...]]:
        held = await self.tx.connection() if isinstance(self.tx, AsyncSession) else self.tx
        found = await held.exec_driver_sql(statement)
        return [tuple(row) for row in found] if found.returns_rows else []


Open = Callable[[str], CallerTransaction]  # given the path of the file, or the URL


def _alchemy(dialect: str) -> Callable[[str], Any]:
    def engine(where: str) -> Any:
        return create_engine(_at(dialect, where), poolclass=NullPool)

    return engine


def _at(dialect: str, where: str) -> str:
    return (
        f"{dialect}:///{where}" if dialect == "sqlite" else f"{dialect}:{where.partition(':')[2]}"
    )


def _connection(dialect: str) -> Open:
    return lambda where: Alchemy(Connection(_alchemy(dialect)(where)))


def _session(dialect: str) -> Open:
    return lambda where: Alchemy(OrmSession(_alchemy(dialect)(where)))


def _async_connection(dialect: str) -> Open:
    def open_transaction(where: str) -> CallerTransaction:
        engine = create_async_engine(_at(dialect, where), poolclass=NullPool)

        async def connect() -> AsyncConnection:
            return await engine.connect()

        return AsyncAlchemy(connect, engine)

    return open_transaction


def _async_session(dialect: str) -> Open:
    def open_transaction(where: str) -> CallerTransaction:
        engine = create_async_engine(_at(dialect, where), poolclass=NullPool)

        async def connect() -> AsyncSession:
            return AsyncSession(engine)

        return AsyncAlchemy(connect, engine)

    return open_transaction


TRANSACTION_KINDS: dict[str, dict[str, Open]] = {
    "sqlite": {
        "sqlite3": lambda path: Plain(sqlite3.connect(path)),
        "sqlalchemy connection": _connection("sqlite"),
        "sqlalchemy session": _session("sqlite"),
    },
    "postgres": {
        "psycopg": lambda url: Plain(psycopg.connect(url)),
        "psycopg2": lambda url: Plain(psycopg2.connect(url)),
        "async psycopg": lambda url: AsyncPsycopg(lambda: psycopg.AsyncConnection.connect(url)),
        "asyncpg": lambda url: Asyncpg(lambda: asyncpg.connect(url)),
        "sqlalchemy connection, psycopg": _connection("postgresql+psycopg"),
        "sqlalchemy connection, psycopg2": _connection("postgresql+psycopg2"),
        "sqlalchemy session, psycopg": _session("postgresql+psycopg"),
        "sqlalchemy session, psycopg2": _session("postgresql+psycopg2"),
        "sqlalchemy async connection, asyncpg": _async_connection("postgresql+asyncpg"),
        "sqlalchemy async connection, psycopg": _async_connection("postgresql+psycopg"),
        "sqlalchemy async session, asyncpg": _async_session("postgresql+asyncpg"),
        "sqlalchemy async session, psycopg": _async_session("postgresql+psycopg"),
    },
}
ALL = [(backend, name) for backend, kinds in TRANSACTION_KINDS.items() for name in kinds]
DRIVERS = [(backend, name) for backend, name in ALL if "sqlalchemy" not in name]

# SQLAlchemy gives us the connection of its driver.  Which connection it is, and when it commits, is
# tested with all kinds; what the store does in the transaction, with each driver.
each_driver = pytest.mark.parametrize(
    "kind", DRIVERS, ids=[f"{backend}: {name}" for backend, name in DRIVERS], indirect=True
)
