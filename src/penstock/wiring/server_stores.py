"""Stores on a database server, by the scheme of their URL; their drivers are optional parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Protocol

from penstock.domain.errors import StoreRefused
from penstock.domain.optional_parts import not_installed
from penstock.domain.store.finding import Finding
from penstock.settings.store_url import MARIADB
from penstock.store.maintenance.migrate import Migration
from penstock.store.store import SqlStore


class ServerStores(Protocol):
    """What the package of each such database offers."""

    name: str
    backup_tools: str

    def open(self, url: str, *, request_timeout_ms: int) -> SqlStore: ...
    def clock_of(self, store: SqlStore) -> Callable[[], int]: ...
    def migrate(self, url: str) -> list[Migration]: ...
    def pending_sql(self, url: str) -> str: ...
    def examine(
        self, url: str, *, clock: Callable[[], int], space: bool = False
    ) -> Iterator[Finding]: ...


class PostgresStores:
    name = "PostgreSQL"
    backup_tools = "pg_dump, pg_basebackup"

    def open(self, url: str, *, request_timeout_ms: int) -> SqlStore:
        from penstock.store.postgres.store import open_postgres

        return open_postgres(url, request_timeout_ms=request_timeout_ms)

    def clock_of(self, store: SqlStore) -> Callable[[], int]:
        from penstock.store.postgres.store import clock_of

        return clock_of(store)

    def migrate(self, url: str) -> list[Migration]:
        from penstock.store.postgres.store import migrate

        return migrate(url)

    def pending_sql(self, url: str) -> str:
        from penstock.store.postgres.store import pending_sql

        return pending_sql(url)

    def examine(
        self, url: str, *, clock: Callable[[], int], space: bool = False
    ) -> Iterator[Finding]:
        from penstock.store.maintenance.postgres_checks import examine

        return examine(url, clock=clock, space=space)


class MariadbStores:
    name = "MariaDB"
    backup_tools = "mariadb-dump --single-transaction, mariadb-backup"

    def open(self, url: str, *, request_timeout_ms: int) -> SqlStore:
        from penstock.store.mariadb.store import open_mariadb

        return open_mariadb(url, request_timeout_ms=request_timeout_ms)

    def clock_of(self, store: SqlStore) -> Callable[[], int]:
        from penstock.store.mariadb.store import clock_of

        return clock_of(store)

    def migrate(self, url: str) -> list[Migration]:
        from penstock.store.mariadb.store import migrate

        return migrate(url)

    def pending_sql(self, url: str) -> str:
        from penstock.store.mariadb.store import pending_sql

        return pending_sql(url)

    def examine(
        self, url: str, *, clock: Callable[[], int], space: bool = False
    ) -> Iterator[Finding]:
        from penstock.store.maintenance.mariadb_checks import examine

        return examine(url, clock=clock, space=space)


def server_stores(url: str) -> ServerStores:
    """Raises StoreRefused if the driver is not installed."""
    if url.startswith(MARIADB):
        if find_spec("pymysql") is None:
            raise StoreRefused(not_installed("MariaDB support", "mysql"))
        return MariadbStores()
    if find_spec("psycopg") is None:
        raise StoreRefused(not_installed("PostgreSQL support", "postgres"))
    return PostgresStores()
