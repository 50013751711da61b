"""The Delta log of a lake table; the paths of its files are those of the lake."""

from __future__ import annotations

from collections.abc import Mapping

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
    return LakeTableLog(log, of)


def _inside(file: FileEntry, table: str) -> FileEntry:
    return file._replace(path=file.path.removeprefix(f"{table}/"))
