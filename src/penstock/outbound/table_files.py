"""Reads the pipeline's tables: Parquet files in one folder per table and day.

    <folder>/<table>/dt=2031-12-24/part-….parquet

pyarrow is imported only when rows are read, so that a server does not need it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from penstock.domain.lake.tables import TableReadiness, TableRows, TableSummary

_DAY = re.compile(r"dt=(\d{4}-\d\d-\d\d)")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_DT = "dt"


class TableFiles:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def readiness(self) -> TableReadiness:
        if not self.tables():
            return TableReadiness.NO_TABLES
        return TableReadiness.READY if find_spec("pyarrow") else TableReadiness.NO_READER

    def tables(self) -> list[TableSummary]:
        if not self._folder.is_dir():
            return []
        found = (self._table(place) for place in sorted(self._folder.iterdir()))
        return [table for table in found if table is not None]

    def is_computed(self, table: str) -> bool:
        # Spark makes the folder of a table, and no folder for a day without rows.
        return (self._folder / table).is_dir()

    def rows(self, table: str, *, from_day: str, to_day: str, limit: int) -> TableRows | None:
        place = self._folder / table
        days = self._days(place)
        if not days:
            return None
        wanted = sorted((day for day in days if from_day <= day <= to_day), reverse=True)
        columns: list[str] = []
        rows: list[list[Any]] = []
        for day, record in self._records(place, wanted):
            if len(rows) == limit:
                return TableRows(columns=columns, rows=rows, is_cut=True)
            # Columns that were added later are last; older rows do not have them.
            columns += [name for name in record if name not in columns]
            rows.append([record.get(name, day if name == _DT else None) for name in columns])
        width = len(columns)
        return TableRows(
            columns=columns, rows=[row + [None] * (width - len(row)) for row in rows], is_cut=False
        )

    def _table(self, place: Path) -> TableSummary | None:
        days = sorted(self._days(place)) if _NAME.fullmatch(place.name) else []
        if not days:
            return None
        size = sum(file.stat().st_size for day in days for file in _files(place, day))
        return TableSummary(
            name=place.name, days=len(days), first_day=days[0], last_day=days[-1], bytes=size
        )

    def _days(self, place: Path) -> list[str]:
        if not place.is_dir():
            return []
        return [found[1] for one in place.iterdir() if (found := _DAY.fullmatch(one.name))]

    def _records(self, place: Path, days: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        parquet = import_module("pyarrow.parquet")
        for day in days:
            for file in _files(place, day):
                with parquet.ParquetFile(file) as opened:
                    for batch in opened.iter_batches(batch_size=1_000):
                        for record in batch.to_pylist():
                            yield day, {_DT: day, **record}


def _files(place: Path, day: str) -> list[Path]:
    """All files except those that are still being written, whose names begin with . or _."""
    found = (place / f"dt={day}").glob("*.parquet")
    return sorted(file for file in found if file.name[0] not in "._")
