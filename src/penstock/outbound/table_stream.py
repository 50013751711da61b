"""Streams the rows of a computed table: some columns, the newest day first.

The files are listed once, so that all readings see the same ones.  Memory holds one batch of a
file; the files of a small table are kept too, because they are read several times.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from io import BytesIO
from typing import Any

from penstock.domain.errors import FilesChanged, FileUnreadable
from penstock.domain.insights.answer import Row
from penstock.files.folder import FileEntry, Folder, first_line

_DT = "dt"
_BATCH = 8_000  # rows
SMALL = 8 * 1024 * 1024  # bytes of all files


class TableStream:
    """`days`: the files by day."""

    def __init__(self, folder: Folder, days: Mapping[str, Sequence[FileEntry]]) -> None:
        self._folder = folder
        self._days = {day: days[day] for day in sorted(days, reverse=True)}
        self._is_small = sum(f.size for files in days.values() for f in files) <= SMALL
        self._kept: dict[str, bytes] = {}

    def rows(self, *columns: str, **only: Collection[Any]) -> Iterator[Row]:
        """A column that a file lacks is null."""
        wanted = only.pop(_DT, self._days)
        for day, files in self._days.items():
            for file in files if day in wanted else ():
                for batch in self._batches(file, columns, only):
                    given = [batch.column(name).to_pylist() for name in batch.schema.names]
                    names = (_DT, *batch.schema.names)
                    missing = {name: None for name in columns if name not in names}
                    for values in zip(*given, strict=True):
                        yield dict(zip(names, (day, *values), strict=True), **missing)

    def _batches(
        self, file: FileEntry, columns: Sequence[str], only: Mapping[str, Collection[Any]]
    ) -> Iterator[Any]:
        with explain_unreadable(file.path), self._open(file) as opened:
            known = [name for name in columns if name in opened.schema_arrow.names]
            for batch in opened.iter_batches(batch_size=_BATCH, columns=known):
                yield _filter(batch, only)

    def _open(self, file: FileEntry) -> Any:
        parquet = import_module("pyarrow.parquet")
        if not self._is_small:
            return parquet.ParquetFile(self._folder.source(file.path))
        return parquet.ParquetFile(BytesIO(self._content(file)))

    def _content(self, file: FileEntry) -> bytes:
        if file.path not in self._kept:
            content = self._folder.read(file.path)
            if content is None:
                raise FileNotFoundError(file.path)
            self._kept[file.path] = content
        return self._kept[file.path]


@contextmanager
def explain_unreadable(path: str) -> Iterator[None]:
    """Errors of reading the file inside the block as ours, with its name."""
    from pyarrow import ArrowException

    try:
        yield
    except FileNotFoundError as error:
        raise FilesChanged(f"{path} was replaced while it was read; try again") from error
    except (ArrowException, OSError) as error:
        raise FileUnreadable(
            f"{path} cannot be read: {first_line(error)}; if it is damaged, delete it and run "
            "penstock pipeline run"
        ) from error


def _filter(batch: Any, only: Mapping[str, Collection[Any]]) -> Any:
    pa, compute = import_module("pyarrow"), import_module("pyarrow.compute")
    for name, values in only.items():
        if name in batch.schema.names:
            wanted = pa.array(list(values), batch.schema.field(name).type)
            batch = batch.filter(compute.is_in(batch.column(name), wanted))
        elif None not in values:
            batch = batch.slice(0, 0)
    return batch
