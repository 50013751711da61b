"""Stores on a MariaDB database of the test's own: several of them are several nodes."""

from collections.abc import Callable, Iterator

import pytest

from penstock.store.mariadb.store import MariadbStore, open_mariadb
from tests.clocks import ManualClock
from tests.store.driver import StoreDriver
from tests.support.renewable_mariadb import RenewableMariadb

Open = Callable[..., StoreDriver]


@pytest.fixture
def mariadb_url(renewable_mariadb: RenewableMariadb) -> str:
    """Here with our schema in it."""
    return renewable_mariadb.renew()


@pytest.fixture
def open_one(mariadb_url: str, clock: ManualClock) -> Iterator[Open]:
    """Opens one more store on the same database."""
    stores: list[MariadbStore] = []

    def open_it(options: str = "", *, lanes: int = 2) -> StoreDriver:
        stores.append(open_mariadb(mariadb_url + options, lanes=lanes))
        return StoreDriver(stores[-1], clock)

    yield open_it
    for store in stores:
        store.close()


@pytest.fixture
def drivers(open_one: Open) -> list[StoreDriver]:
    """Two nodes."""
    return [open_one(), open_one()]


@pytest.fixture
def driver(open_one: Open) -> StoreDriver:
    """One node that runs what is submitted together as one batch."""
    return open_one(lanes=1)


@pytest.fixture
def backed_off() -> list[int]:
    """Not counted: InnoDB also locks entries of indexes, in an order that no statement decides.

    Its deadlocks are retried, and the tests find what a retry would spoil.
    """
    return []
