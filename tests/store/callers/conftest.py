"""An application with a database of its own, in which a store lives as well."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from penstock.ports.store import Store
from penstock.store.postgres.store import open_postgres
from penstock.store.store import open_sqlite
from tests.store.backends import RenewableDatabase
from tests.store.callers.transaction_kinds import ALL, ORDERS, TRANSACTION_KINDS, CallerTransaction

OpenTransaction = Callable[[], CallerTransaction]


@pytest.fixture(params=ALL, ids=[f"{backend}: {name}" for backend, name in ALL])
def kind(request: pytest.FixtureRequest) -> tuple[str, str]:
    """The backend and the kind of transaction."""
    found: tuple[str, str] = request.param
    return found


@pytest.fixture
def backend(kind: tuple[str, str]) -> str:
    return kind[0]


@pytest.fixture
def where(backend: str, request: pytest.FixtureRequest) -> str:
    """The application's database, with its table."""
    if backend == "sqlite":
        folder: Path = request.getfixturevalue("tmp_path")
        path = folder / "app.db"
        application = sqlite3.connect(path)
        application.execute(ORDERS)
        application.close()
        return str(path)
    home: RenewableDatabase = request.getfixturevalue("renewable_database")
    url = home.renew()
    with psycopg.connect(url) as connection:
        connection.execute(ORDERS)
    return url


@pytest.fixture
def open_store(backend: str, where: str) -> Callable[[], Store]:
    if backend == "sqlite":
        return lambda: open_sqlite(Path(where))
    return lambda: open_postgres(where, lanes=1)


@pytest.fixture
def open_transaction(kind: tuple[str, str], where: str, store: Store) -> Iterator[OpenTransaction]:
    opened: list[CallerTransaction] = []

    def open_one() -> CallerTransaction:
        backend, name = kind
        opened.append(TRANSACTION_KINDS[backend][name](where))
        return opened[-1]

    yield open_one
    for transaction in opened:
        transaction.rollback()
        transaction.close()


@pytest.fixture
def transaction(open_transaction: OpenTransaction) -> CallerTransaction:
    return open_transaction()
