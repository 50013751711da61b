"""Reads the pipeline's tables: Parquet files in one folder per table and day.

    <folder>/<table>/dt=2031-12-24/part-….parquet

A table with a Delta log has the files that the log lists.

pyarrow is imported only when rows are read, or for an object store, so that a server does not need
it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from penstock.domain.errors import InvalidRequest
from penstock.domain.insights.answer import SourceTable
from penstock.domain.lake.places import is_object_store, join
from penstock.domain.lake.tables import (
    AsOf,
    TableReadiness,
    TableRows,
    TableSummary,
    TableVersion,
)
from penstock.files.delta_log import LOG, log_of
from penstock.files.folder import FileEntry, Folder, Token, open_folder
from penstock.outbound.table_stream import TableStream, explain_unreadable

_DAY = re.compile(r"/dt=(\d{4}-\d\d-\d\d)/")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_DT = "dt"
_FEW_DAYS = 3  # are listed one by one: a table may have years
_Days = Mapping[str, list[FileEntry]]  # files by day


class TableFiles:
    def __init__(self, place: str, token: Token) -> None:
        self._place = place
        self._token = token

    def has_reader(self) -> bool:
        return find_spec("pyarrow") is not None

    def readiness(self) -> TableReadiness:
        has_reader = self.has_reader()
        if is_object_store(self._place) and not has_reader:
            return TableReadiness.NO_READER
        if not any(self._files(name).days for name in self._names()):
            return TableReadiness.NO_TABLES
        return TableReadiness.READY if has_reader else TableReadiness.NO_READER

    def tables(self) -> list[TableSummary]:
        if is_object_store(self._place) and not self.has_reader():
            return []
        found = (_summary(name, self._files(name).all()) for name in self._names())
        return [table for table in found if table is not None]

    def newest_day(self) -> str | None:
        days = (day for name in self._names() for day in self._files(name).days)
        return max(days, default=None)

    def streams(
        self, tables: Collection[str], *, from_day: str, to_day: str
    ) -> dict[str, SourceTable | None]:
        # Spark makes the folder of a table, and no folder for a day without rows.
        computed = set(self._folder.names())
        found: dict[str, SourceTable | None] = dict.fromkeys(tables)
        for name in computed.intersection(tables):
            files = self._files(name)
            days = [day for day in files.days if from_day <= day <= to_day]
            found[name] = TableStream(self._folder, files.of(days))
        return found

    def rows(
        self, table: str, *, from_day: str, to_day: str, limit: int, as_of: AsOf = None
    ) -> TableRows | None:
        files = self._files(table, as_of)
        if not files.days:
            return None
        wanted = [day for day in files.days if from_day <= day <= to_day]
        columns: list[str] = []
        rows: list[list[Any]] = []
        for day, record in self._records(files.one_by_one(wanted)):
            if len(rows) == limit:
                return TableRows(columns=columns, rows=rows, is_cut=True)
            # Columns that were added later are last; older rows do not have them.
            columns += [name for name in record if name not in columns]
            rows.append([record.get(name, day if name == _DT else None) for name in columns])
        width = len(columns)
        return TableRows(
            columns=columns, rows=[row + [None] * (width - len(row)) for row in rows], is_cut=False
        )

    @cached_property
    def _folder(self) -> Folder:
        return open_folder(self._place, self._token)

    def versions(self, table: str, *, limit: int) -> list[TableVersion] | None:
        log = log_of(join(self._place, table))
        return None if log is None else log.versions(limit)

    def _names(self) -> list[str]:
        return [name for name in self._folder.names() if _NAME.fullmatch(name)]

    def _files(self, table: str, as_of: AsOf = None) -> _TableFolder:
        return _TableFolder(self._folder, table, as_of)

    def _records(
        self, days: Iterable[tuple[str, list[FileEntry]]]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        parquet = import_module("pyarrow.parquet")
        for day, files in days:
            for file in files:
                with (
                    explain_unreadable(file.path),
                    parquet.ParquetFile(self._folder.source(file.path)) as opened,
                ):
                    for batch in opened.iter_batches(batch_size=1_000):
                        for record in batch.to_pylist():
                            yield day, {_DT: day, **record}


class _TableFolder:
    """The files of a table by day; those of a day are listed when they are asked for."""

    def __init__(self, folder: Folder, table: str, as_of: AsOf) -> None:
        self._folder = folder
        self._table = table
        names = folder.names(table)
        log = log_of(join(folder.place, table)) if LOG in names else None
        if log is None and as_of is not None:
            raise InvalidRequest(f"table {table!r} has no versions: it is not a Delta table")
        self._logged: _Days | None = None
        if log is not None:
            self._logged = _by_day(f._replace(path=f"{table}/{f.path}") for f in log.files(as_of))
            names = [f"{_DT}={day}" for day in self._logged]
        found = (_DAY.match(f"/{name}/") for name in names)
        self.days = sorted((day[1] for day in found if day is not None), reverse=True)

    def all(self) -> _Days:
        return _by_day(self._folder.files(self._table)) if self._logged is None else self._logged

    def of(self, days: Sequence[str]) -> _Days:
        """Many are listed at once: an object store needs few requests for that."""
        if self._logged is None and len(days) <= _FEW_DAYS:
            return dict(self.one_by_one(days))
        found = self.all()
        return {day: found[day] for day in days if day in found}

    def one_by_one(self, days: Sequence[str]) -> Iterator[tuple[str, list[FileEntry]]]:
        for day in days:
            if self._logged is not None:
                yield day, self._logged[day]
            else:
                found = _by_day(self._folder.files(f"{self._table}/{_DT}={day}"))
                yield from found.items()


def _by_day(files: Iterable[FileEntry]) -> _Days:
    """The days that have files, with these."""
    days: dict[str, list[FileEntry]] = {}
    for file in files:
        day = _DAY.search(file.path)
        if day is not None and file.name.endswith(".parquet"):
            days.setdefault(day[1], []).append(file)
    return days


def _summary(name: str, days: _Days) -> TableSummary | None:
    if not days:
        return None
    size = sum(file.size for files in days.values() for file in files)
    return TableSummary(
        name=name, days=len(days), first_day=min(days), last_day=max(days), bytes=size
    )
