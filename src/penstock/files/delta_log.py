"""The log of a Delta table: which files belong to it, version by version.

    <table>/_delta_log/00000000000000000007.json

The files are those of a plain table: Parquet, in one folder per day.  A commit adds and removes
several of them in one step, and any engine that knows Delta Lake reads them.  Removed files stay
for readers of older versions until they are vacuumed (`delta.deletedFileRetentionDuration`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from penstock.domain.datetimes import moment_of
from penstock.domain.errors import FilesChanged, InvalidRequest, LakeUnreachable
from penstock.domain.lake.places import is_object_store, join, local_path, object_url
from penstock.domain.lake.tables import AsOf, TableVersion
from penstock.domain.optional_parts import not_installed
from penstock.files.folder import (
    FileEntry,
    can_open,
    first_line,
    open_folder,
    s3_endpoint,
    sync_path,
)

if TYPE_CHECKING:
    import pyarrow as pa

LOG = "_delta_log"
RETENTION = {"delta.deletedFileRetentionDuration": "interval 7 days"}
_ENTRY = ("path", "size_bytes", "modification_time")
_CHUNK = 10_000
_MAX_RETRIES = 15  # of a commit that other commits overtook without a conflict


class DeltaSchema(NamedTuple):
    """What the log says about the table."""

    name: str
    meaning: str
    schema: pa.Schema  # with the partition columns
    partitions: tuple[str, ...]


class FileListing:
    """The files of a version, by path, in a third of the memory of a list."""

    def __init__(self, table: Any) -> None:
        import pyarrow as pa

        found = pa.table(table).select(_ENTRY)
        path = found["path"].cast(pa.string())
        self._table = found.set_column(0, "path", path).sort_by("path")

    def __iter__(self) -> Iterator[FileEntry]:
        for batch in self._table.to_batches(max_chunksize=_CHUNK):
            yield from map(FileEntry, *(column.to_pylist() for column in batch.columns))


class DeltaLog:
    """`place`: the folder of the table, or its URL.  Paths of files are relative to it."""

    def __init__(self, place: str) -> None:
        self.place = place
        self._url = object_url(place) if is_object_store(place) else local_path(place)

    def files(self, as_of: AsOf = None) -> list[FileEntry]:
        """The files of a version, by path."""
        return list(self.listing(as_of))

    def listing(self, as_of: AsOf = None) -> FileListing:
        with self._translate_errors():
            table = self._open(as_of).get_add_actions(flatten=True)
        return FileListing(table)

    def versions(self, limit: int) -> list[TableVersion]:
        """Newest first."""
        with self._translate_errors():
            found = self._open().history(limit)
        return [
            TableVersion(
                version=one["version"],
                committed_at=moment_of(one["timestamp"]),
                operation=one["operation"],
            )
            for one in found
        ]

    def create(self, of: DeltaSchema, files: Sequence[FileEntry]) -> None:
        """Begin the log with these files; does nothing if it exists."""
        delta = _delta()
        with self._translate_errors():
            delta.transaction.create_table_with_add_actions(
                self._url,
                delta.Schema.from_arrow(of.schema),
                [self._add(file) for file in files],
                mode="ignore",
                partition_by=list(of.partitions),
                name=of.name,
                description=of.meaning,
                configuration=RETENTION,
                storage_options=self._options(),
            )
        self._sync(0)

    def add(self, of: DeltaSchema, files: Sequence[FileEntry]) -> None:
        """Adding a file again changes nothing but its size."""
        self._commit(of, files, mode="append")

    def replace(self, of: DeltaSchema, files: Sequence[FileEntry], days: Sequence[str]) -> None:
        """Replace all files of those days with these."""
        self._commit(of, files, mode="overwrite", where=[("dt", "in", sorted(days))])

    def remove(self, of: DeltaSchema, partition: Mapping[str, str]) -> None:
        """Remove the files of one partition."""
        where = [(name, "=", value) for name, value in partition.items()]
        self._commit(of, (), mode="overwrite", where=where)

    def vacuum(self) -> list[str]:
        """Delete files that were removed before the retention, and those of killed writers."""
        with self._translate_errors():
            table = self._open()
            if not table.vacuum(dry_run=True, full=True):
                return []
            return list(table.vacuum(dry_run=False, full=True))

    def _commit(
        self,
        of: DeltaSchema,
        files: Sequence[FileEntry],
        *,
        mode: str,
        where: list[tuple[str, str, Any]] | None = None,
    ) -> None:
        delta = _delta()
        with self._translate_errors():
            table = self._open()
            version = table.version()
            known = {field.name for field in table.schema().fields}
            added = [f for f in delta.Schema.from_arrow(of.schema).fields if f.name not in known]
            if added:
                table.alter.add_columns(added)
                table.update_incremental()
            table.create_write_transaction(
                [self._add(file) for file in files],
                mode,
                table.schema(),
                partition_by=list(of.partitions),
                partition_filters=where,
                commit_properties=delta.CommitProperties(max_commit_retries=_MAX_RETRIES),
            )
        self._sync(version + 1)

    def _open(self, as_of: AsOf = None) -> Any:
        delta = _delta()
        try:
            table = delta.DeltaTable(self._url, storage_options=self._options())
            if as_of is not None:
                table.load_as_version(as_of)
        except delta.exceptions.TableNotFoundError:
            raise InvalidRequest(f"{self.place} is not a Delta table") from None
        except delta.exceptions.DeltaError as error:
            if as_of is None:
                raise
            raise InvalidRequest(f"{self.place} has no version {as_of}") from error
        return table

    def _add(self, file: FileEntry) -> Any:
        """The values of the partition columns are in the path."""
        folders = file.path.split("/")[:-1]
        partition = dict(folder.split("=", 1) for folder in folders)
        return _delta().transaction.AddAction(
            path=file.path,
            size=file.size,
            partition_values=partition,
            modification_time=file.changed_at,
            data_change=True,
            stats=msgspec.json.encode({"numRecords": self._rows(file)}).decode(),
        )

    def _rows(self, file: FileEntry) -> int:
        from pyarrow import parquet

        source = open_folder(self.place, str).source(file.path)
        return int(parquet.read_metadata(source).num_rows)

    def _options(self) -> dict[str, str] | None:
        """Everything else deltalake takes from the environment."""
        endpoint = s3_endpoint()
        if not self._url.startswith("s3://") or not endpoint:
            return None
        return {
            "aws_endpoint": endpoint,
            "aws_allow_http": str(endpoint.startswith("http://")).lower(),
        }

    def _sync(self, from_version: int) -> None:
        """On a disk: a commit must survive a power cut as the files do."""
        if is_object_store(self.place):
            return
        folder = join(self._url, LOG)
        new = [name for name in os.listdir(folder) if name >= f"{from_version:020}.json"]
        for path in [*(join(folder, name) for name in new if name.endswith(".json")), folder]:
            sync_path(path)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        delta = _delta()
        try:
            yield
        except delta.exceptions.CommitFailedError as error:
            raise FilesChanged(
                f"another program changed {self.place} at the same time; run again"
            ) from error
        except (OSError, delta.exceptions.DeltaError) as error:
            line = first_line(error)
            raise LakeUnreachable(f"{self.place} cannot be reached: {line}") from error


def log_of(place: str) -> DeltaLog | None:
    """The log of a table; None for a plain one, and for one that only Spark can reach.

    Raises InvalidRequest if deltalake is missing.
    """
    if not can_open(place) or not open_folder(place, str).has_entries(LOG):
        return None
    _delta()
    return DeltaLog(place)


def check_deltalake() -> None:
    """Raises InvalidRequest."""
    _delta()


def _delta() -> Any:
    """Imported on demand: only Delta tables need it."""
    try:
        import deltalake
        import deltalake.exceptions
        import deltalake.transaction
    except ImportError as error:
        raise InvalidRequest(not_installed("Delta Lake support", "delta")) from error
    return deltalake
