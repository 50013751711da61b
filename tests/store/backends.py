"""Opening a fresh store of each backend."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from penstock.ports.store import Store
from penstock.store.sql_store import open_sqlite

BACKENDS = ("sqlite", "postgres")

Open = Callable[[], Store]


def sqlite_at(folder: Path) -> Open:
    return lambda: open_sqlite(folder / "penstock.db")


def postgres_at(url: str) -> Open:
    # Imported late, so that the tests of SQLite need no driver of PostgreSQL.
    from penstock.store.postgres_store import migrate, open_postgres

    def open_it() -> Store:
        migrate(url)
        return open_postgres(url)

    return open_it
