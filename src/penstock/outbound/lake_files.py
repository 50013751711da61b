"""The lake as Parquet files, in a folder or in an object store (files/folder.py)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.domain.errors import LakeRefused
from penstock.domain.lake import layout as lake
from penstock.domain.lake.layout import MARKER, LakeTable, Range
from penstock.domain.lake.places import join
from penstock.files.arrow_types import field_of
from penstock.files.delta_log import check_deltalake
from penstock.files.folder import FileEntry, Folder, NewFile, StagedFolder
from penstock.outbound.lake_log import LakeTableLog, open_table_log
from penstock.ports.archive import LakeFileWriter, LakeRow, LakeSnapshot

ROWS_PER_GROUP = 1_000_000
BYTES_PER_GROUP = 128 * 1024 * 1024  # whichever comes first: bodies may be large
_SNAPSHOT = re.compile(rf"{lake.SNAPSHOTS.name}/dt=([^/]+)/snapshot_no=(\d+)/")


class _Marker(msgspec.Struct):
    lake_id: str
    schema_version: int


def schema_of(table: LakeTable) -> pa.Schema:
    """The schema without the partition columns, which are in the folder names."""
    fields = [field_of(column, nullable=column.is_nullable) for column in table.columns]
    return pa.schema(fields, {lake.VERSION_KEY: str(lake.SCHEMA_VERSION)})


class LakeFiles:
    """`is_delta`: tables are Delta tables; a table that already is one stays one."""

    def __init__(self, folder: Folder, *, is_delta: bool = False) -> None:
        if is_delta:
            check_deltalake()
        self._folder = folder
        self._is_delta = is_delta
        self._logs: dict[str, LakeTableLog] = {}

    @property
    def place(self) -> str:
        return self._folder.place

    def id(self) -> str | None:
        text = self._folder.read(MARKER)
        if text is None:
            return None
        try:
            marker = msgspec.json.decode(text, type=_Marker)
        except msgspec.MsgspecError as error:
            raise LakeRefused(f"{join(self.place, MARKER)} cannot be read: {error}") from error
        if marker.schema_version > lake.SCHEMA_VERSION:
            raise LakeRefused(
                f"the lake in {self.place} has schema version {marker.schema_version}; "
                f"this version of Penstock knows {lake.SCHEMA_VERSION}"
            )
        return marker.lake_id

    def create(self, lake_id: str) -> None:
        text = msgspec.json.encode(_Marker(lake_id, lake.SCHEMA_VERSION))
        self._folder.write(MARKER, text + b"\n")

    def file(self, table: LakeTable, dt: str, rows: Range) -> LakeFileWriter:
        path = f"{lake.folder(table, dt)}/{lake.file_name(table, rows)}"
        return _File(table, self._folder.new_file(path), partial(self._list, table))

    def files(self, table: LakeTable, dt: str) -> list[Range]:
        names = self._folder.names(lake.folder(table, dt))
        return sorted(r for name in names if (r := lake.range_of(table, name)) is not None)

    def snapshot(self, dt: str, snapshot_no: int) -> LakeSnapshot:
        folders = {
            table.name: lake.folder(table, dt, snapshot_no=snapshot_no)
            for table in (lake.QUEUES, lake.SNAPSHOTS)  # messages last: readers find it by them
        }
        staged = {name: self._folder.stage_folder(path) for name, path in folders.items()}
        folded = {name: one for name, one in staged.items() if one is not None}
        if not folded:
            return SnapshotObjects(self._folder, folders, self._publish)
        return SnapshotFolders(folded, folders, self._publish)

    def snapshots(self) -> list[tuple[str, int]]:
        log = self._log(lake.SNAPSHOTS)
        files = self._folder.files(lake.SNAPSHOTS.name) if log is None else log.files()
        places = (_SNAPSHOT.match(file.path) for file in files)
        return sorted({(m[1], int(m[2])) for m in places if m is not None}, key=lambda p: p[1])

    def remove_snapshots(self, gone: Iterable[tuple[str, int]]) -> None:
        """Messages first: readers find a snapshot by its messages."""
        for dt, snapshot_no in gone:
            for table in (lake.SNAPSHOTS, lake.QUEUES):
                log = self._log(table)
                if log is None:
                    self._folder.remove_folder(lake.folder(table, dt, snapshot_no=snapshot_no))
                else:
                    log.remove({"dt": dt, "snapshot_no": str(snapshot_no)})
        for table in (lake.SNAPSHOTS, lake.QUEUES):
            if (log := self._log(table)) is not None:
                log.vacuum()

    def tidy(self, *, older_ms: int) -> int:
        tables = [f"{table.name}/dt=*/" for table in lake.TABLES.values()]
        return self._folder.tidy(["", *tables], older_ms=older_ms)

    def _publish(self, table: str, path: str) -> None:
        """Add the files of a new folder to the log of its table."""
        self._list(lake.TABLES[table], *self._folder.files(path))

    def _list(self, table: LakeTable, *files: FileEntry) -> None:
        log = self._log(table)
        if log is not None:
            log.add(*files)

    def _log(self, table: LakeTable) -> LakeTableLog | None:
        """None: a plain table.  It is looked for each time: another program may have created it."""
        if table.name not in self._logs:
            log = open_table_log(self._folder, table, schema_of(table), is_wanted=self._is_delta)
            if log is None:
                return None
            self._logs[table.name] = log
        return self._logs[table.name]


class SnapshotFolders:
    """Hidden folders of files, which are renamed in the end."""

    def __init__(
        self,
        staged: Mapping[str, StagedFolder],
        folders: Mapping[str, str],
        publish: Callable[[str, str], None],
    ) -> None:
        self._staged = staged
        self._folders = folders
        self._publish = publish

    def file(self, table: LakeTable, rows: Range) -> LakeFileWriter:
        return _File(table, self._staged[table.name].new_file(lake.file_name(table, rows)))

    def keep(self) -> None:
        for name, folder in self._staged.items():
            folder.keep()
            self._publish(name, self._folders[name])

    def discard(self) -> None:
        for folder in self._staged.values():
            folder.discard()


class SnapshotObjects:
    """One file per table, whatever its size: an upload appears at once, several of them do not."""

    def __init__(
        self, folder: Folder, folders: Mapping[str, str], publish: Callable[[str, str], None]
    ) -> None:
        self._folder = folder
        self._folders = folders
        self._publish = publish
        self._open: dict[str, _WideFile] = {}

    def file(self, table: LakeTable, rows: Range) -> LakeFileWriter:
        if table.name not in self._open:
            self._open[table.name] = _WideFile(table, self._folder, self._folders[table.name])
        return self._open[table.name].part(rows)

    def keep(self) -> None:
        for name, path in self._folders.items():
            self._open[name].keep()
            self._publish(name, path)

    def discard(self) -> None:
        for file in self._open.values():
            file.discard()


class _WideFile:
    """The rows of several files in one, which is named in the end."""

    def __init__(self, table: LakeTable, folder: Folder, path: str) -> None:
        self._table = table
        self._path = path
        self._new = folder.new_file(path)
        self._file = _File(table, self._new)
        self._rows: Range | None = None

    def part(self, rows: Range) -> LakeFileWriter:
        so_far = self._rows or rows
        self._rows = Range(min(so_far.from_no, rows.from_no), max(so_far.to_no, rows.to_no))
        return _Part(self._file)

    def keep(self) -> None:
        assert self._rows is not None
        self._new.path = f"{self._path}/{lake.file_name(self._table, self._rows)}"
        self._file.keep()

    def discard(self) -> None:
        self._file.discard()


class _Part:
    def __init__(self, file: _File) -> None:
        self._file = file

    def add(self, rows: Sequence[LakeRow]) -> None:
        self._file.add(rows)

    def keep(self) -> None:
        """It appears with the whole file."""

    def discard(self) -> None:
        """The whole snapshot is discarded."""


class _File:
    """`on_kept` is called with the file once it is there."""

    def __init__(
        self,
        table: LakeTable,
        new: NewFile,
        on_kept: Callable[[FileEntry], None] | None = None,
    ) -> None:
        self._schema = schema_of(table)
        self._new = new
        self._on_kept = on_kept
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0
        self._bytes = 0
        self._writer = pq.ParquetWriter(
            new.out,
            self._schema,
            compression="zstd",
            use_dictionary=[column.name for column in table.columns if column.repeats],
        )

    def add(self, rows: Sequence[LakeRow]) -> None:
        if not rows:
            return
        columns = [
            pa.array(values, field.type)
            for values, field in zip(zip(*rows, strict=True), self._schema, strict=True)
        ]
        batch = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        self._waiting.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= ROWS_PER_GROUP or self._bytes >= BYTES_PER_GROUP:
            self._write_group()

    def keep(self) -> None:
        try:
            self._write_group()
            self._writer.close()
            entry = self._new.keep()
        except BaseException:
            self.discard()
            raise
        if self._on_kept is not None:
            self._on_kept(entry)

    def discard(self) -> None:
        self._writer.close()
        self._new.discard()

    def _write_group(self) -> None:
        if self._waiting:
            whole = pa.Table.from_batches(self._waiting, self._schema)
            self._writer.write_table(whole, row_group_size=ROWS_PER_GROUP)
        self._waiting, self._rows, self._bytes = [], 0, 0
