"""A fresh store per test, once per backend."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from penstock.ports.store import Store
from tests.clocks import ManualClock
from tests.store.backends import (
    BACKENDS,
    PLAIN,
    Open,
    RenewableDatabase,
    mariadb_at,
    postgres_at,
    sqlite_at,
)
from tests.store.driver import StoreDriver
from tests.support.postgres import PostgresCluster


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def renewable_database(postgres_cluster: PostgresCluster) -> Iterator[RenewableDatabase]:
    with closing(RenewableDatabase(postgres_cluster.new_database())) as database:
        yield database


@pytest.fixture
def open_store(backend: str, request: pytest.FixtureRequest) -> Open:
    """Opens the test's own database; a second call opens the same one again."""
    if backend == "mariadb":
        return mariadb_at(request.getfixturevalue("renewable_mariadb").renew())
    if backend != "postgres":
        folder: Path = request.getfixturevalue("tmp_path")
        return sqlite_at(folder, checksums=backend != PLAIN)
    home: RenewableDatabase = request.getfixturevalue("renewable_database")
    return postgres_at(home.renew())


@pytest.fixture
def store(open_store: Open) -> Iterator[Store]:
    store = open_store()
    yield store
    store.close()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store_driver(store: Store, clock: ManualClock) -> StoreDriver:
    return StoreDriver(store, clock)


@pytest.fixture
def driver(store_driver: StoreDriver) -> StoreDriver:
    """The store's driver, unless the folder has one of its own."""
    return store_driver
