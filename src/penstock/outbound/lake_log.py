"""The Delta log of a lake table; the paths of its files are those of the lake.

Archivers with another setting write to the same table.  Each looks for the log once its file is
there, and the one that creates the log looks for files once the log is there: so no file is missed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from penstock.domain.lake.layout import LakeTable
from penstock.domain.lake.places import join
from penstock.files.delta_log import DeltaLog, DeltaSchema, log_of
from penstock.files.folder import FileEntry, Folder


class LakeTableLog:
    def __init__(self, log: DeltaLog, of: DeltaSchema) -> None:
        self._log = log
        self._of = of

    def add(self, *files: FileEntry) -> None:
        self._log.add(self._of, [_inside(file, self._of.name) for file in files])

    def add_missing(self, files: Iterable[FileEntry]) -> None:
        """Of these files, add those that the log does not list."""
        listed = {file.path for file in self.files()}
        missing = [file for file in files if file.path not in listed]
        if missing:
            self.add(*missing)

    def files(self) -> list[FileEntry]:
        return [file._replace(path=f"{self._of.name}/{file.path}") for file in self._log.files()]

    def remove(self, partition: Mapping[str, str]) -> None:
        self._log.remove(self._of, partition)

    def vacuum(self) -> None:
        self._log.vacuum()


def open_table_log(
    folder: Folder, table: LakeTable, schema: pa.Schema, *, is_wanted: bool
) -> LakeTableLog | None:
    """The log of the table.  If it is wanted and missing, a new log lists the existing files."""
    place = join(folder.place, table.name)
    found = log_of(place)
    if found is None and not is_wanted:
        return None
    types = {"dt": pa.string(), "snapshot_no": pa.int64()}
    partitions = [pa.field(name, types[name]) for name in table.partitions]
    of = DeltaSchema(table.name, table.meaning, pa.schema([*schema, *partitions]), table.partitions)
    log = found or DeltaLog(place)
    if found is None:
        log.create(of, [_inside(file, table.name) for file in folder.files(table.name)])
    opened = LakeTableLog(log, of)
    # Files of removed snapshots stay in their folders for a while.
    if found is None or not table.of_snapshots:
        opened.add_missing(folder.files(table.name))
    return opened


def _inside(file: FileEntry, table: str) -> FileEntry:
    return file._replace(path=file.path.removeprefix(f"{table}/"))
