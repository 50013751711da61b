"""Reads the pipeline's tables: Parquet files in one folder per table and day.

    <folder>/<table>/dt=2031-12-24/part-….parquet

A table with a Delta log has the files that the log lists.

pyarrow is imported only when rows are read, or for an object store, so that a server does not need
it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from penstock.domain.errors import FileUnreadable, InvalidRequest, TableChanged
from penstock.domain.lake.places import is_object_store, join
from penstock.domain.lake.tables import (
    AsOf,
    TableReadiness,
    TableRows,
    TableSummary,
    TableVersion,
)
from penstock.files.delta_log import log_of
from penstock.files.folder import FileEntry, Folder, Token, first_line, open_folder

_DAY = re.compile(r"/dt=(\d{4}-\d\d-\d\d)/")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_DT = "dt"
_Days = Mapping[str, list[FileEntry]]  # files by day


class TableFiles:
    def __init__(self, place: str, token: Token) -> None:
        self._place = place
        self._token = token

    def readiness(self) -> TableReadiness:
        has_reader = find_spec("pyarrow") is not None
        if is_object_store(self._place) and not has_reader:
            return TableReadiness.NO_READER
        if not self.tables():
            return TableReadiness.NO_TABLES
        return TableReadiness.READY if has_reader else TableReadiness.NO_READER

    def tables(self) -> list[TableSummary]:
        if is_object_store(self._place) and find_spec("pyarrow") is None:
            return []
        names = [name for name in self._folder.names() if _NAME.fullmatch(name)]
        found = (_summary(name, self._days(name)) for name in names)
        return [table for table in found if table is not None]

    def is_computed(self, table: str) -> bool:
        # Spark makes the folder of a table, and no folder for a day without rows.
        return table in self._folder.names()

    def rows(
        self, table: str, *, from_day: str, to_day: str, limit: int, as_of: AsOf = None
    ) -> TableRows | None:
        days = self._days(table, as_of)
        if not days:
            return None
        wanted = sorted((day for day in days if from_day <= day <= to_day), reverse=True)
        columns: list[str] = []
        rows: list[list[Any]] = []
        for day, record in self._records({day: days[day] for day in wanted}):
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

    def _days(self, table: str, as_of: AsOf = None) -> _Days:
        """The days that have files, with these."""
        days: dict[str, list[FileEntry]] = {}
        for file in self._files(table, as_of):
            day = _DAY.search(file.path)
            if day is not None and file.name.endswith(".parquet"):
                days.setdefault(day[1], []).append(file)
        return days

    def _files(self, table: str, as_of: AsOf) -> list[FileEntry]:
        log = log_of(join(self._place, table))
        if log is not None:
            return [f._replace(path=f"{table}/{f.path}") for f in log.files(as_of)]
        if as_of is not None:
            raise InvalidRequest(f"table {table!r} has no versions: it is not a Delta table")
        return self._folder.files(table)

    def _records(self, days: _Days) -> Iterator[tuple[str, dict[str, Any]]]:
        parquet = import_module("pyarrow.parquet")
        for day, files in days.items():
            for file in files:
                with (
                    _name_unreadable(file.path),
                    parquet.ParquetFile(self._folder.source(file.path)) as opened,
                ):
                    for batch in opened.iter_batches(batch_size=1_000):
                        for record in batch.to_pylist():
                            yield day, {_DT: day, **record}


@contextmanager
def _name_unreadable(path: str) -> Iterator[None]:
    from pyarrow import ArrowException

    try:
        yield
    except FileNotFoundError as error:
        raise TableChanged(f"{path} was replaced while it was read; repeat the command") from error
    except (ArrowException, OSError) as error:
        raise FileUnreadable(
            f"{path} cannot be read: {first_line(error)}; if it is damaged, delete it and run "
            "penstock pipeline run"
        ) from error


def _summary(name: str, days: _Days) -> TableSummary | None:
    if not days:
        return None
    size = sum(file.size for files in days.values() for file in files)
    return TableSummary(
        name=name, days=len(days), first_day=min(days), last_day=max(days), bytes=size
    )
