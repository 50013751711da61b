"""Runs SQL statements on the lake and the computed tables."""

from __future__ import annotations

from typing import Protocol

from penstock.domain.lake.sql import SqlLimits, SqlResult


class SqlRunner(Protocol):
    """Blocks; do not call from an event loop."""

    def is_installed(self) -> bool: ...
    def run(self, statement: str, limits: SqlLimits) -> SqlResult:
        """Raises SqlFailed or SqlTimeout; ShuttingDown after `close`."""
        ...

    def close(self) -> None:
        """End statements that are running."""
        ...
