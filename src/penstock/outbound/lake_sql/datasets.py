"""The tables of the lake and those of the pipeline as Arrow datasets.

    <lake>/<table>/dt=…/*.parquet                     a table of the lake
    <lake>/<table>/dt=…/snapshot_no=…/*.parquet       … of snapshots
    <tables folder>/<table>/dt=…/*.parquet            a computed table
    <tables folder>/runs/*.parquet                    the log of runs

This is the only module that knows where the files of a table are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import fs

from penstock.domain.lake import layout
from penstock.domain.lake.layout import LakeTable
from penstock.domain.lake.places import join
from penstock.files.arrow_filesystem import arrow_filesystem
from penstock.files.delta_log import log_of
from penstock.files.folder import is_visible
from penstock.outbound.lake_files import schema_of

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_DAY = re.compile(r"dt=\d{4}-\d\d-\d\d")
_PARTITION_TYPES = {"dt": pa.string(), "snapshot_no": pa.int64()}


class LakeDatasets:
    """`lake` and `tables` are folders, or URLs of object stores."""

    def __init__(self, lake: str, tables: str) -> None:
        self._lake = _Place(lake)
        self._tables = _Place(tables)

    def names(self) -> list[str]:
        """All tables of the lake, whether they have rows or not, and the computed ones."""
        return [*layout.TABLES, *(n for n in self._computed() if n not in layout.TABLES)]

    def dataset(self, name: str) -> Any:
        """The rows of a table, with its partition columns last."""
        table = layout.TABLES.get(name)
        return self._computed_dataset(name) if table is None else self._lake_dataset(table)

    def _lake_dataset(self, table: LakeTable) -> Any:
        files = self._lake.parquet(table.name)
        return self._lake.dataset(table.name, files, schema_of(table), table.partitions)

    def _computed_dataset(self, name: str) -> Any:
        files = self._tables.parquet(name)
        # Columns are only ever added, so the newest day has all of them.
        newest = ds.ParquetFileFormat().inspect(files[-1], filesystem=self._tables.filesystem)
        partitions = ("dt",) if _is_by_day(files[-1]) else ()
        return self._tables.dataset(name, files, newest, partitions)

    def _computed(self) -> list[str]:
        """The tables that have at least one file."""
        names = sorted(name for name in self._tables.names("") if _NAME.fullmatch(name))
        return [name for name in names if self._is_table(name)]

    def _is_table(self, name: str) -> bool:
        """Whether it has files itself or in folders of days: the state of a stream has neither."""
        listed = self._tables.names(name)
        has_parquet_or_days = any(_is_parquet(found) or _DAY.fullmatch(found) for found in listed)
        return has_parquet_or_days and bool(self._tables.parquet(name))


class _Place:
    """The folder of all tables of one kind."""

    def __init__(self, place: str) -> None:
        self._place = place
        self.filesystem, self._root = arrow_filesystem(place)

    def names(self, folder: str) -> list[str]:
        path = f"{self._root}/{folder}".rstrip("/")
        listed = self.filesystem.get_file_info(fs.FileSelector(path, allow_not_found=True))
        return [entry.base_name for entry in listed]

    def parquet(self, table: str) -> list[str]:
        """The paths of its files, oldest day first; of a Delta table: of its newest version."""
        folder = f"{self._root}/{table}"
        log = log_of(join(self._place, table))
        if log is not None:
            return [f"{folder}/{file.path}" for file in log.files()]
        below = fs.FileSelector(folder, allow_not_found=True, recursive=True)
        paths = (entry.path for entry in self.filesystem.get_file_info(below) if entry.is_file)
        return sorted(path for path in paths if _is_data(path.removeprefix(folder).split("/")[1:]))

    def dataset(
        self, table: str, files: list[str], schema: pa.Schema, partitions: Iterable[str]
    ) -> Any:
        inner = pa.schema([(name, _PARTITION_TYPES[name]) for name in partitions])
        whole = pa.schema([*schema, *inner])
        if not files:
            return ds.dataset(whole.empty_table())
        return ds.dataset(
            files,
            schema=whole,
            format="parquet",
            filesystem=self.filesystem,
            partitioning=ds.partitioning(inner, flavor="hive"),
            partition_base_dir=f"{self._root}/{table}",
        )


def _is_parquet(name: str) -> bool:
    return name.endswith(".parquet") and is_visible(name)


def _is_data(parts: list[str]) -> bool:
    return _is_parquet(parts[-1]) and all(map(is_visible, parts))


def _is_by_day(path: str) -> bool:
    return any(_DAY.fullmatch(part) for part in path.split("/"))
