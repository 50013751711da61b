"""SQL on the lake and the computed tables, a few statements at a time."""

from __future__ import annotations

from threading import BoundedSemaphore

from msgspec.structs import replace

from penstock.domain.errors import InvalidRequest, TooManyWaiting
from penstock.domain.lake.sql import SqlLimits, SqlResult, check_statement
from penstock.domain.optional_parts import not_installed
from penstock.ports.sql import SqlRunner


class SqlService:
    """Blocks; do not call from an event loop."""

    def __init__(self, runner: SqlRunner, limits: SqlLimits, *, max_running: int) -> None:
        self._runner = runner
        self._limits = limits
        self._max_running = max_running
        self._running = BoundedSemaphore(max(1, max_running))

    def run(self, statement: str, *, rows: int | None = None) -> SqlResult:
        """`rows`: the most rows to return; None: as many as the server allows."""
        limits = self._limits_for(rows)
        check_statement(statement)
        if not self._runner.is_installed():
            raise InvalidRequest(not_installed("SQL support", "sql"))
        if self._max_running == 0:
            raise InvalidRequest("SQL is turned off on this server (sql.max_running = 0)")
        if not self._running.acquire(blocking=False):
            raise TooManyWaiting(
                f"{self._max_running} SQL statements are running (sql.max_running); try again later"
            )
        try:
            return self._runner.run(statement, limits)
        finally:
            self._running.release()

    def close(self) -> None:
        self._runner.close()

    def _limits_for(self, rows: int | None) -> SqlLimits:
        most = self._limits.rows
        if rows is None:
            return self._limits
        if not 1 <= rows <= most:
            raise InvalidRequest(f"limit must be from 1 to {most}")
        return replace(self._limits, rows=rows)
