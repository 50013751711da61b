"""Callers' own transactions on PostgreSQL: picks the driver, creates days outside of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.domain.errors import InvalidRequest, StoreUnavailable
from penstock.store.callers.async_bridge import AsyncBridge
from penstock.store.callers.caller_transactions import CallerDatabase, CallerTransactions
from penstock.store.callers.postgres_caller import CallerPostgres, Driver, StoreLocation
from penstock.store.callers.postgres_drivers import (
    AsyncpgDriver,
    AsyncPsycopgDriver,
    Psycopg2Driver,
    PsycopgDriver,
)
from penstock.store.callers.recognition import ASYNC_PSYCOPG, ASYNCPG, PSYCOPG, PSYCOPG2
from penstock.store.commit.requests import running_loop
from penstock.store.partitions import Partitions
from penstock.supervision.threads import start_logged


class PostgresCallerTransactions(CallerTransactions):
    def __init__(self, location: StoreLocation, make_day: Callable[[int], None]) -> None:
        super().__init__()
        self._location = location
        self._make_day = make_day
        self._days: set[int] = set()  # known to have tables

    def open(self, kind: str, connection: Any, bridge: AsyncBridge | None) -> CallerDatabase:
        return CallerPostgres(_driver(kind, connection, bridge), self._location)

    def set_up(self, days: Partitions) -> None:
        # Creating a day locks out transactions that need it, which must not wait for a caller's
        # commit.
        days.make_elsewhere(self._make, self._days)

    def refuse_deadlock(self) -> None:
        """Nothing to refuse: a plain send waits for no lock of a caller's transaction."""

    def after_use(self) -> None:
        """Nothing to do: PostgreSQL checkpoints by itself."""

    def _make(self, day: int) -> None:
        if running_loop() is None:
            self._make_day(day)
            return
        # In a thread, because a loop cannot wait for the answer here; it happens once a day.
        failed: list[StoreUnavailable] = []
        start_logged("penstock-day", lambda: self._make_day(day), on_failure=failed.append).join()
        if failed:
            raise failed[0]


def _driver(kind: str, connection: Any, bridge: AsyncBridge | None) -> Driver:
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
