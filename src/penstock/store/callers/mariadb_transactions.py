"""Callers' own transactions on MariaDB: not supported, and refused with a clear error."""

from __future__ import annotations

from typing import Any

from penstock.domain.errors import InvalidRequest
from penstock.store.callers.async_bridge import AsyncBridge
from penstock.store.callers.caller_transactions import CallerDatabase, CallerTransactions
from penstock.store.partitions import Partitions


class MariadbCallerTransactions(CallerTransactions):
    def open(self, kind: str, connection: Any, bridge: AsyncBridge | None) -> CallerDatabase:
        raise InvalidRequest(
            f"tx is a {kind}, but the store is MariaDB, which takes no caller's transaction"
        )

    def set_up(self, days: Partitions) -> None:
        """Nothing to do: no transaction is opened."""

    def refuse_deadlock(self) -> None:
        """Nothing to refuse: a plain send waits for no caller's transaction."""

    def after_use(self) -> None:
        """Nothing to do: no transaction is used."""
