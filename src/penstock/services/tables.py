"""Use cases of the pipeline's tables."""

from __future__ import annotations

from penstock.domain.errors import InvalidRequest, TableNotFound
from penstock.domain.lake.tables import (
    MAX_ROWS,
    GoldReadiness,
    GoldTable,
    TableRows,
    check_day,
    check_table,
)
from penstock.ports.tables import TableReader


class Tables:
    """Not for an event loop: it reads files."""

    def __init__(self, tables: TableReader, *, folder: str) -> None:
        self._tables = tables
        self.folder = folder

    def readiness(self) -> GoldReadiness:
        return self._tables.readiness()

    def tables(self) -> list[GoldTable]:
        return self._tables.tables()

    def rows(self, table: str, *, from_day: str, to_day: str, limit: int) -> TableRows:
        check_table(table)
        check_day("from_day", from_day)
        check_day("to_day", to_day)
        if not 1 <= limit <= MAX_ROWS:
            raise InvalidRequest(f"limit must be from 1 to {MAX_ROWS}")
        if self.readiness() is GoldReadiness.NO_READER:
            raise InvalidRequest("reading the pipeline's tables needs pyarrow: install it")
        found = self._tables.rows(table, from_day=from_day, to_day=to_day, limit=limit)
        if found is None:
            raise TableNotFound(table)
        return found
