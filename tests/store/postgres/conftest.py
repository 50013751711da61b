"""Stores on a database of the test's own: several of them are several nodes."""

from collections.abc import Callable, Iterator

import pytest

from penstock.store.postgres.connection import PostgresDatabase
from penstock.store.postgres.store import PostgresStore, open_postgres
from tests.clocks import ManualClock
from tests.store.driver import StoreDriver


class PostgresDriver(StoreDriver):
    store: PostgresStore


Open = Callable[..., PostgresDriver]


@pytest.fixture
def postgres_url(migrated_url: str) -> str:
    """Here with our schema in it."""
    return migrated_url


@pytest.fixture
def open_one(postgres_url: str, clock: ManualClock) -> Iterator[Open]:
    """Opens one more store on the same database."""
    stores: list[PostgresStore] = []

    def open_it(options: str = "", *, lanes: int = 2) -> PostgresDriver:
        stores.append(open_postgres(postgres_url + options, lanes=lanes))
        return PostgresDriver(stores[-1], clock)

    yield open_it
    for store in stores:
        store.close()


@pytest.fixture
def drivers(open_one: Open) -> list[PostgresDriver]:
    """Two nodes."""
    return [open_one(), open_one()]


@pytest.fixture
def driver(open_one: Open) -> PostgresDriver:
    """One node that runs what is submitted together as one batch."""
    return open_one(lanes=1)


@pytest.fixture
def backed_off(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The collisions after which a transaction was retried."""
    retries: list[int] = []
    back_off = PostgresDatabase.back_off

    def count(db: PostgresDatabase, times: int) -> None:
        retries.append(times)
        back_off(db, times)

    monkeypatch.setattr(PostgresDatabase, "back_off", count)
    return retries
