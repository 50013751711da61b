"""The lake as a folder of Parquet files; each is complete and synced, or invisible to readers.

A file is written under a name that readers ignore, synced, and renamed; then its folder is synced.
A killed process leaves at most a file that readers ignore.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.domain.errors import LakeRefused
from penstock.domain.lake import layout as lake
from penstock.domain.lake.layout import MARKER, LakeColumn, LakeTable, Range, Type
from penstock.ports.archive import LakeFileWriter, LakeRow
from penstock.ports.clock import Dice

ROWS_PER_GROUP = 1_000_000
BYTES_PER_GROUP = 128 * 1024 * 1024  # whichever comes first: bodies may be large
_TMP = ".tmp-"

_TYPES = {
    Type.TEXT: pa.string(),
    Type.INT: pa.int32(),
    Type.LONG: pa.int64(),
    Type.BOOL: pa.bool_(),
}


class _Marker(msgspec.Struct):
    lake_id: str
    schema_version: int


def schema_of(table: LakeTable) -> pa.Schema:
    """The schema without the partition columns, which are in the folder names."""
    fields = [_field(column) for column in table.columns]
    return pa.schema(fields, {lake.VERSION_KEY: str(lake.SCHEMA_VERSION)})


class LakeFiles:
    def __init__(self, folder: Path, dice: Dice) -> None:
        self._folder = folder
        self._dice = dice

    @property
    def place(self) -> str:
        return str(self._folder)

    def id(self) -> str | None:
        try:
            text = (self._folder / MARKER).read_bytes()
        except FileNotFoundError:
            return None
        try:
            marker = msgspec.json.decode(text, type=_Marker)
        except msgspec.MsgspecError as error:
            raise LakeRefused(f"{self._folder / MARKER} cannot be read: {error}") from error
        if marker.schema_version > lake.SCHEMA_VERSION:
            raise LakeRefused(
                f"the lake in {self._folder} has schema version {marker.schema_version}; "
                f"this version of Penstock knows {lake.SCHEMA_VERSION}"
            )
        return marker.lake_id

    def create(self, lake_id: str) -> None:
        make_folder(self._folder)
        temporary = self._temporary(self._folder, MARKER)
        text = msgspec.json.encode(_Marker(lake_id, lake.SCHEMA_VERSION))
        with _create(temporary) as out:
            out.write(text + b"\n")
            _sync(out)
        _rename(temporary, self._folder / MARKER)

    def file(self, table: LakeTable, dt: str, rows: Range) -> LakeFileWriter:
        folder = self._folder / lake.folder(table, dt)
        make_folder(folder)
        name = lake.file_name(table, rows)
        return _File(table, self._temporary(folder, name), folder / name)

    def files(self, table: LakeTable, dt: str) -> list[Range]:
        folder = self._folder / lake.folder(table, dt)
        names = os.listdir(folder) if folder.is_dir() else []
        return sorted(r for name in names if (r := lake.range_of(table, name)) is not None)

    def snapshot(self, dt: str, snapshot_no: int) -> SnapshotFiles:
        return SnapshotFiles(self._folder, dt, snapshot_no, self._dice.digits(8))

    def snapshots(self) -> list[tuple[str, int]]:
        found = self._folder.glob(f"{lake.SNAPSHOTS.name}/dt=*/snapshot_no=*")
        pairs = ((f.parent.name.removeprefix("dt="), f.name.partition("=")[2]) for f in found)
        return sorted(((dt, int(no)) for dt, no in pairs if no.isdigit()), key=lambda p: p[1])

    def remove_snapshots(self, gone: Iterable[tuple[str, int]]) -> None:
        """Messages first: readers find a snapshot by its messages."""
        for dt, snapshot_no in gone:
            for table in (lake.SNAPSHOTS, lake.QUEUES):
                folder = self._folder / lake.folder(table, dt, snapshot_no=snapshot_no)
                if folder.is_dir():
                    hidden = self._temporary(folder.parent, folder.name)
                    _rename(folder, hidden)
                    shutil.rmtree(hidden)

    def tidy(self, *, older_ms: int) -> int:
        """Ages are measured by the file system's clock, which need not be ours."""
        left = list(self._left_behind())
        if not left:
            return 0
        probe = self._temporary(self._folder, "now")
        probe.touch()
        before_at = _changed_at(probe) - older_ms
        probe.unlink()
        old = [path for path in left if _changed_at(path) < before_at]
        for path in old:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        return len(old)

    def _left_behind(self) -> Iterator[Path]:
        yield from self._folder.glob(f"{_TMP}*")
        for table in lake.TABLES.values():
            yield from self._folder.glob(f"{table.name}/dt=*/{_TMP}*")

    def _temporary(self, folder: Path, name: str) -> Path:
        return folder / f"{_TMP}{self._dice.digits(8)}-{name}"


class SnapshotFiles:
    def __init__(self, lake_folder: Path, dt: str, snapshot_no: int, token: str) -> None:
        self._lake = lake_folder
        self._dt = dt
        self._no = snapshot_no
        self._token = token

    def file(self, table: LakeTable, rows: Range) -> LakeFileWriter:
        folder = self._hidden(table)
        make_folder(folder)
        name = lake.file_name(table, rows)
        return _File(table, folder / f"{_TMP}{name}", folder / name)

    def keep(self) -> None:
        """Messages last: readers find a snapshot by its messages."""
        for table in (lake.QUEUES, lake.SNAPSHOTS):
            folder = self._lake / lake.folder(table, self._dt, snapshot_no=self._no)
            _rename(self._hidden(table), folder)

    def discard(self) -> None:
        for table in (lake.QUEUES, lake.SNAPSHOTS):
            shutil.rmtree(self._hidden(table), ignore_errors=True)

    def _hidden(self, table: LakeTable) -> Path:
        folder = self._lake / lake.folder(table, self._dt)
        return folder / f"{_TMP}{self._token}-{self._no}"


class _File:
    def __init__(self, table: LakeTable, temporary: Path, path: Path) -> None:
        self._schema = schema_of(table)
        self._temporary = temporary
        self._path = path
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0
        self._bytes = 0
        self._out = _create(temporary)
        self._writer = pq.ParquetWriter(
            self._out,
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
            _sync(self._out)
            self._out.close()
            _rename(self._temporary, self._path)
        except BaseException:
            self.discard()
            raise

    def discard(self) -> None:
        self._writer.close()
        self._out.close()
        self._temporary.unlink(missing_ok=True)

    def _write_group(self) -> None:
        if self._waiting:
            whole = pa.Table.from_batches(self._waiting, self._schema)
            self._writer.write_table(whole, row_group_size=ROWS_PER_GROUP)
        self._waiting, self._rows, self._bytes = [], 0, 0


def make_folder(folder: Path) -> None:
    """Create and sync: a new folder survives a power cut once its parent is synced."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    _sync_folder(folder.parent)


def _create(path: Path) -> IO[bytes]:
    """Readable by its owner only: the lake contains bodies."""
    flags = os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "wb")


def _field(column: LakeColumn) -> pa.Field:
    return pa.field(column.name, _TYPES[column.type], nullable=column.is_nullable)


def _sync(out: IO[bytes]) -> None:
    out.flush()
    os.fsync(out.fileno())


def _rename(old: Path, new: Path) -> None:
    old.rename(new)
    _sync_folder(new.parent)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _changed_at(path: Path) -> int:
    try:
        return int(path.stat().st_mtime * 1000)
    except FileNotFoundError:  # another process has removed it
        return 2**62
