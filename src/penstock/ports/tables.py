"""Reads the pipeline's tables."""

from __future__ import annotations

from typing import Protocol

from penstock.domain.lake.tables import GoldReadiness, GoldTable, TableRows


class TableReader(Protocol):
    """Not for an event loop: it reads files."""

    def readiness(self) -> GoldReadiness: ...
    def tables(self) -> list[GoldTable]:
        """By name."""
        ...

    def rows(self, table: str, *, from_day: str, to_day: str, limit: int) -> TableRows | None:
        """`from_day <= day <= to_day`; None: there is no such table."""
        ...
