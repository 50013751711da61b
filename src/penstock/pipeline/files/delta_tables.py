"""Tables of the lake, and computed ones, that have a Delta log (files/delta_log.py).

Spark itself needs no support for Delta: it reads the files of one version, by their paths, and
writes files, which a commit then adds to the log.  The log is read and written here, so this
machine must reach the tables, even if Spark runs elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

import pyarrow as pa

from penstock.domain.lake.places import spark_url
from penstock.files.delta_log import DeltaLog, DeltaSchema, FileListing, check_deltalake, log_of
from penstock.files.folder import FileEntry, Folder, open_folder
from penstock.pipeline.schemas import DT, ComputedTable

_LISTED_APART = 30  # days; of more than these, the table is listed as a whole
_DAY = re.compile(rf"{DT}=([^/]+)/")


class DeltaTables:
    """`path_of`: the folder or URL of a table.  Remembers the versions it has seen."""

    def __init__(self, path_of: Callable[[str], str]) -> None:
        self._path_of = path_of
        self._logs: dict[str, DeltaLog | None] = {}
        self._files: dict[str, FileListing] = {}

    def refresh(self) -> None:
        self._logs.clear()
        self._files.clear()

    def is_delta_table(self, table: str) -> bool:
        if table not in self._logs:
            self._logs[table] = log_of(self._path_of(table))
        return self._logs[table] is not None

    def list_files(self, table: str) -> Iterator[tuple[str, int, int]]:
        """Path below the table, size and change time of every file of the version."""
        return ((f.path, f.size, f.changed_at) for f in self._version(table))

    def paths(self, table: str, days: Collection[str] | None) -> list[str]:
        """The paths of the version's files, of those days or of all, as Spark knows them."""
        path = spark_url(self._path_of(table))
        files = self._version(table)
        return [f"{path}/{f.path}" for f in files if days is None or _day(f) in days]

    @contextmanager
    def replacing(
        self, table: ComputedTable, schema: pa.Schema, days: Collection[str]
    ) -> Iterator[None]:
        """The files that appear inside the block replace those of the days, in one commit."""
        path = self._path_of(table.name)
        check_deltalake()
        folder = open_folder(path, str)
        of = DeltaSchema(table.name, table.meaning, schema, (DT,))
        if not self.is_delta_table(table.name):
            DeltaLog(path).create(of, folder.files())
            self.refresh()
        before = _files_of_days(folder, days)
        yield
        new = sorted(_files_of_days(folder, days) - before)
        DeltaLog(path).replace(of, [f for f in new if f.name.endswith(".parquet")], sorted(days))

    def vacuum(self, table: str) -> None:
        if self.is_delta_table(table):
            DeltaLog(self._path_of(table)).vacuum()

    def _version(self, table: str) -> FileListing:
        if table not in self._files:
            self._files[table] = DeltaLog(self._path_of(table)).listing()
        return self._files[table]


def _files_of_days(folder: Folder, days: Collection[str]) -> set[FileEntry]:
    if len(days) <= _LISTED_APART:
        return {file for day in days for file in folder.files(f"{DT}={day}")}
    return {file for file in folder.files() if _day(file) in days}


def _day(file: FileEntry) -> str | None:
    found = _DAY.match(file.path)
    return None if found is None else found[1]
