"""The lake read with pyarrow in this process: no Spark, no Java, for lakes of a moderate size.

Rows are read in batches.  A caller that keeps rows counts their bytes (`Memory`), so that a lake
that is too large is reported instead of exhausting the memory.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import compute as pc
from pyarrow import fs

from penstock.domain.errors import InvalidRequest
from penstock.domain.lake.layout import MARKER, TABLES, LakeColumn, LakeTable
from penstock.files.arrow_filesystem import arrow_filesystem
from penstock.files.arrow_types import field_of
from penstock.files.folder import first_line, is_visible
from penstock.pipeline.spark.stopped import PipelineStopped

MIB = 1024 * 1024
MAX_HELD_BYTES = 512 * MIB  # sorting and copying may double it for a moment
BATCH_ROWS = 20_000
TOO_LARGE = "lake_too_large"
UNREACHABLE = "lake_unreachable"

_PLACE = re.compile(r"dt=(\d{4}-\d\d-\d\d)(?:/snapshot_no=(\d+))?/[^/]+\.parquet")


class LakeFile(msgspec.Struct, frozen=True, order=True):
    dt: str
    snapshot_no: int | None
    path: str
    size: int


class Memory:
    """Counts the bytes that are kept in memory; raises PipelineStopped above the limit."""

    def __init__(self, most: int | None = None) -> None:
        self._most = MAX_HELD_BYTES if most is None else most
        self._held = 0

    def reserve(self, size: int) -> None:
        self._held += size
        if self._held > self._most:
            raise PipelineStopped(
                f"this lake needs more than {self._most // MIB} MiB of memory without Spark; "
                "restrict the command to fewer queues or kinds, or use --engine spark",
                TOO_LARGE,
            )


class LocalLake:
    def __init__(self, folder: str) -> None:
        """Raises PipelineStopped if pyarrow cannot open a URL like this one."""
        self.folder = folder
        try:
            self._fs, self._root = arrow_filesystem(folder)
        except InvalidRequest as error:
            raise PipelineStopped(str(error), UNREACHABLE) from error
        self._files: dict[str, list[LakeFile]] = {}

    def is_empty(self) -> bool:
        return not any(self.files(table) for table in TABLES.values())

    def lake_id(self) -> str | None:
        """The id that the store of this lake knows; None: there is none."""
        try:
            with self._fs.open_input_file(f"{self._root}/{MARKER}") as file:
                marker = msgspec.json.decode(file.read())
        except (FileNotFoundError, msgspec.MsgspecError):
            return None
        return marker.get("lake_id") if isinstance(marker, dict) else None

    def files(self, table: LakeTable) -> list[LakeFile]:
        """By day and name; listed once."""
        if table.name not in self._files:
            self._files[table.name] = sorted(self._list_files(table.name))
        return self._files[table.name]

    def batches(
        self, table: LakeTable, columns: Collection[str], files: Iterable[LakeFile] | None = None
    ) -> Iterator[tuple[LakeFile, pa.RecordBatch]]:
        """Rows of these files, or of all; columns that a file does not have are null."""
        fields = [schema_of(table.columns).field(name) for name in columns]
        for file in self.files(table) if files is None else files:
            with _report_unreadable(file.path.removeprefix(f"{self._root}/")):
                yield from ((file, batch) for batch in self._read(file, pa.schema(fields)))

    def _read(self, file: LakeFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with self._fs.open_input_file(file.path) as source, pq.ParquetFile(source) as parquet:
            for batch in parquet.iter_batches(BATCH_ROWS, columns=schema.names):
                yield conform(batch, schema)

    def _list_files(self, table: str) -> Iterator[LakeFile]:
        folder = f"{self._root}/{table}"
        for found in self._fs.get_file_info(
            fs.FileSelector(folder, recursive=True, allow_not_found=True)
        ):
            inner = found.path.removeprefix(folder).lstrip("/")
            place = _PLACE.fullmatch(inner)
            # Other readers ignore such names, too: they are not complete yet.
            if place is not None and is_visible(inner.rpartition("/")[2]):
                number = None if place[2] is None else int(place[2])
                yield LakeFile(place[1], number, found.path, found.size or 0)


class NumberSet:
    """Numbers that are close together, one byte for each between the least and the greatest."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._first = 0
        self._flags = bytearray()

    def add(self, numbers: pa.Array) -> None:
        if not len(numbers):
            return
        bounds = pc.min_max(numbers).as_py()
        self._make_room(bounds["min"], bounds["max"])
        first, flags = self._first, self._flags
        for number in numbers.to_pylist():
            flags[number - first] = 1

    def contains(self, numbers: pa.Array) -> pa.Array:
        """True for each number that was added."""
        flags = pa.Array.from_buffers(
            pa.uint8(), len(self._flags), [None, pa.py_buffer(self._flags)]
        )
        places = pc.subtract(numbers, self._first)
        is_inside = pc.and_(pc.greater_equal(places, 0), pc.less(places, len(self._flags)))
        found = flags.take(pc.if_else(is_inside, places, None))
        return pc.fill_null(pc.equal(found, 1), False)

    def _make_room(self, least: int, most: int) -> None:
        if not self._flags:
            self._first = least
        before = max(0, self._first - least)
        after = max(0, most + 1 - self._first - len(self._flags))
        if before or after:
            self._memory.reserve(before + after)
            # A new object, because arrays that `contains` returned may still refer to the old one.
            self._flags = bytearray(before) + self._flags + bytearray(after)
            self._first -= before


def schema_of(columns: Iterable[LakeColumn]) -> pa.Schema:
    """Every field may be null: files are not trusted to have none."""
    return pa.schema([field_of(column, nullable=True) for column in columns])


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of the schema; those that the batch does not have are null."""
    names = set(batch.schema.names)
    return pa.RecordBatch.from_arrays(
        [
            batch.column(field.name).cast(field.type)
            if field.name in names
            else pa.nulls(batch.num_rows, field.type)
            for field in schema
        ],
        schema=schema,
    )


@contextmanager
def _report_unreadable(path: str) -> Iterator[None]:
    """Report a file that cannot be read in one line."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise PipelineStopped(
            f"{path} cannot be read: {first_line(error)}", "unreadable_file"
        ) from error
