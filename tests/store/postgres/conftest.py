"""Stores on a database of the test's own: several of them are several nodes."""

from collections.abc import Callable, Iterator

import pytest

from penstock.store.postgres.connection import PostgresDatabase
from penstock.store.postgres.store import PostgresStore, migrate, open_postgres
from tests.clocks import ManualClock
from tests.store.desk import Desk


class PostgresDesk(Desk):
    store: PostgresStore


Open = Callable[..., PostgresDesk]


@pytest.fixture
def open_one(postgres_url: str, clock: ManualClock) -> Iterator[Open]:
    """Opens one more store on the same database."""
    migrate(postgres_url)
    stores: list[PostgresStore] = []

    def open_it(options: str = "", *, lanes: int = 2) -> PostgresDesk:
        stores.append(open_postgres(postgres_url + options, lanes=lanes))
        return PostgresDesk(stores[-1], clock)

    yield open_it
    for store in stores:
        store.close()


@pytest.fixture
def desks(open_one: Open) -> list[PostgresDesk]:
    """Two nodes."""
    return [open_one(), open_one()]


@pytest.fixture
def desk(open_one: Open) -> PostgresDesk:
    """One node that runs what is submitted together as one batch."""
    return open_one(lanes=1)


@pytest.fixture
def stepped_back(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often somebody was in another's way and had to begin again."""
    told: list[int] = []
    step_back = PostgresDatabase.step_back

    def tell(db: PostgresDatabase, times: int) -> None:
        told.append(times)
        step_back(db, times)

    monkeypatch.setattr(PostgresDatabase, "step_back", tell)
    return told
