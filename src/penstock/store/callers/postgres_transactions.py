"""Callers' own transactions on PostgreSQL: which driver it is, and days made beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.domain.errors import InvalidRequest, StoreUnavailable
from penstock.store.callers.async_bridge import Bridge
from penstock.store.callers.caller_database import CallerDatabase
from penstock.store.callers.caller_transactions import Callers
from penstock.store.callers.postgres_caller import CallerPostgres, Driver, Home
from penstock.store.callers.postgres_drivers import (
    AsyncpgDriver,
    AsyncPsycopgDriver,
    Psycopg2Driver,
    PsycopgDriver,
)
from penstock.store.callers.recognition import ASYNC_PSYCOPG, ASYNCPG, PSYCOPG, PSYCOPG2
from penstock.store.commit.ticket import running_loop
from penstock.store.partitions import Partitions
from penstock.supervision.threads import start_logged


class PostgresCallers(Callers):
    def __init__(self, home: Home, make_day: Callable[[int], None]) -> None:
        super().__init__()
        self._home = home
        self._make_day = make_day
        self._days: set[int] = set()  # that have tables

    def open(self, kind: str, connection: Any, bridge: Bridge | None) -> CallerDatabase:
        return CallerPostgres(_driver(kind, connection, bridge), self._home)

    def set_up(self, days: Partitions) -> None:
        # The one who makes a day keeps others from making it: not until a caller's commit.
        days.make_by(self._make, self._days)

    def refuse_deadlock(self) -> None:
        """Nothing to refuse: a plain send waits for no lock of a caller's transaction."""

    def used(self) -> None:
        """Nothing follows: PostgreSQL moves its log by itself."""

    def _make(self, day: int) -> None:
        if running_loop() is None:
            self._make_day(day)
            return
        # On a loop an answer would have to be awaited; it happens once a day.
        failed: list[StoreUnavailable] = []
        start_logged("penstock-day", lambda: self._make_day(day), on_failure=failed.append).join()
        if failed:
            raise failed[0]


def _driver(kind: str, connection: Any, bridge: Bridge | None) -> Driver:
    if bridge is not None:
        if kind == ASYNCPG:
            return AsyncpgDriver(connection, bridge.wait)
        if kind == ASYNC_PSYCOPG:
            return AsyncPsycopgDriver(connection, bridge.wait)
    elif kind == PSYCOPG:
        return PsycopgDriver(connection)
    elif kind == PSYCOPG2:
        return Psycopg2Driver(connection)
    raise InvalidRequest(f"tx is a {kind}, but the store is PostgreSQL")
