"""The lake and the computed tables, read and written through Spark by table and day.

    <lake>/<table>/dt=…             the lake: written by the archiver, never changed here
    <tables folder>/<table>/dt=…    the jobs' tables: can be deleted and computed again

Everything goes through Spark, so the folders may be anywhere that Spark can reach, and the session
may run on another machine (Spark Connect).
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator
from datetime import date

import msgspec
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from penstock.domain.errors import InvalidRequest
from penstock.domain.lake.layout import TABLES
from penstock.domain.lake.places import (
    is_object_store,
    join,
    local_path,
    scheme_of,
    spark_url,
)
from penstock.pipeline.delta_tables import DeltaTables
from penstock.pipeline.frames import frame_of
from penstock.pipeline.progress import is_remote
from penstock.pipeline.registry import computed_tables
from penstock.pipeline.schemas import DT, ComputedTable, conform, schema_of

TABLES_FOLDER = "derived"
# Delta encoding and the fastest compression: a fifth faster to write, and smaller.
_PARQUET = {"parquet.writer.version": "v2", "parquet.compression.codec.zstd.level": "1"}
_PLACE = re.compile(rf"/([a-z_]+)(/{DT}=(\d{{4}}-\d\d-\d\d)/.+)$")


class TableFile(msgspec.Struct, frozen=True, order=True):
    path: str  # below the folder of the lake or of the tables
    size: int
    changed_at: int


class SparkLake:
    """`is_delta`: computed tables are Delta tables; one that already is stays one."""

    def __init__(
        self,
        spark: SparkSession,
        folder: str,
        *,
        tables_folder: str | None = None,
        is_delta: bool = False,
    ) -> None:
        self.spark = spark
        self.is_delta = is_delta
        self.folder = spark_url(folder.rstrip("/"))
        self.tables_folder = spark_url((tables_folder or join(folder, TABLES_FOLDER)).rstrip("/"))
        self._seen: dict[str, dict[str, dict[str, list[TableFile]]]] = {}
        self._counted: dict[tuple[str, str], int] = {}
        self._delta = DeltaTables(self._path)

    def refresh(self) -> None:
        """Forget which files were found."""
        self._delta.refresh()
        self._seen.clear()
        self._counted.clear()

    def is_empty(self) -> bool:
        """True if the broker has not written anything yet."""
        return not any(self.files(table) for table in TABLES)

    def read(self, table: str, days: Collection[str] | None = None) -> DataFrame:
        """The rows of those days, or of all; a table that does not exist yet is empty."""
        of_lake = TABLES.get(table)
        schema = computed_tables()[table].schema if of_lake is None else schema_of(of_lake)
        if self._delta.is_one(table):
            return self._read_version(table, schema, days)
        try:
            found = self.spark.read.schema(schema).parquet(self._path(table))
            found.schema  # noqa: B018 -- Spark Connect looks for the files only now
        except AnalysisException as error:
            if not is_missing(error):
                raise
            return frame_of(self.spark, [], schema)
        return found if days is None else found.where(F.col(DT).isin(sorted(days)))

    def files(self, table: str) -> dict[str, list[TableFile]]:
        """The files of a table by day, as of the first call since `refresh`."""
        if self._delta.is_one(table):
            return _by_table(self._delta.listed(table)).get(table, {})
        folder = self.folder if table in TABLES else self.tables_folder
        if folder not in self._seen:
            self._seen[folder] = _by_table(self._listed(folder))
        return self._seen[folder].get(table, {})

    def replace(self, table: ComputedTable, rows: DataFrame, days: Collection[str]) -> None:
        """Replace the rows of those days with these."""
        wanted = conform(rows, table).where(F.col(DT).isin(sorted(days)))
        if not table.is_large:
            wanted = wanted.repartition(DT)  # one file per day
        if self.is_delta or self._delta.is_one(table.name):
            self._commit(table, wanted, days)
            return
        before = self.files(table.name)
        # Days are swapped at the end: until then, and after a kill, readers find the old rows.
        wanted.write.partitionBy(DT).mode("overwrite").options(
            partitionOverwriteMode="dynamic", **_PARQUET
        ).parquet(self._path(table.name))
        self._forget(table.name)
        after = self.files(table.name)
        # Spark swaps only days that have new rows.
        left = [day for day in days if set(before.get(day, ())) & set(after.get(day, ()))]
        for day in left:
            self._clear(table, day)
        if left:
            self._forget(table.name)

    def counts(self, tables: Collection[str], days: Collection[str]) -> dict[str, dict[str, int]]:
        """Rows by day and table."""
        for table in tables:
            unknown = [day for day in days if (table, day) not in self._counted]
            if unknown:
                rows = self.read(table, unknown).groupBy(DT).agg(F.count(F.lit(1)).alias("rows"))
                counted = {row[DT]: int(row["rows"]) for row in rows.collect()}
                self._counted |= {(table, day): counted.get(day, 0) for day in unknown}
        return {day: {table: self._counted[table, day] for table in tables} for day in days}

    def vacuum(self, tables: Iterable[str]) -> None:
        """Delete files of Delta tables that no recent version has."""
        for table in tables:
            self._delta.vacuum(table)

    def _commit(self, table: ComputedTable, rows: DataFrame, days: Collection[str]) -> None:
        """Add files to the folders of those days; then let the log replace the old ones."""
        is_elsewhere = is_remote(self.spark) and not os.path.isdir(local_path(self.folder))
        if not is_object_store(self.tables_folder) and (
            scheme_of(self.tables_folder) is not None or is_elsewhere
        ):
            raise InvalidRequest(
                f"{self.tables_folder} is out of reach from here: Delta tables must be in a folder "
                "of this machine, or in s3://, gs:// or abfs://"
            )
        with self._delta.replacing(table, to_arrow_schema(table.schema), days):
            rows.write.partitionBy(DT).mode("append").options(**_PARQUET).parquet(
                self._path(table.name)
            )
        self._forget(table.name)

    def _read_version(
        self, table: str, schema: StructType, days: Collection[str] | None
    ) -> DataFrame:
        """The files of one version: another run may replace them meanwhile."""
        files = self._delta.paths(table, days)
        if not files:
            return frame_of(self.spark, [], schema)
        reader = self.spark.read.schema(schema).option("basePath", self._path(table))
        return reader.parquet(*files)

    def _forget(self, table: str) -> None:
        self._delta.refresh()
        self._seen.pop(self.tables_folder, None)
        self._counted = {key: rows for key, rows in self._counted.items() if key[0] != table}

    def _clear(self, table: ComputedTable, day: str) -> None:
        nothing = frame_of(self.spark, [], table.schema).drop(DT)
        nothing.write.mode("overwrite").parquet(f"{self._path(table.name)}/{DT}={day}")

    def _path(self, table: str) -> str:
        return f"{self.folder if table in TABLES else self.tables_folder}/{table}"

    def _listed(self, path: str) -> list[tuple[str, int, int]]:
        """Path, size and change time of every file below; the contents are not read."""
        found = self.spark.read.format("binaryFile").option("recursiveFileLookup", "true")
        try:
            rows = found.load(path).select(
                "path", "length", F.unix_millis("modificationTime").alias("changed_at")
            )
            listed = rows.where(F.col("path").endswith(".parquet")).collect()
        except AnalysisException as error:
            if not is_missing(error):
                raise
            return []
        full = [(row.path, int(row.length), int(row.changed_at)) for row in listed]
        return full + [(name, 0, 0) for name in _empty_files(path)]


def is_missing(error: AnalysisException) -> bool:
    """True if the folder does not exist yet, which is not an error."""
    return error.getCondition() == "PATH_NOT_FOUND"


def _by_table(
    listed: Iterable[tuple[str, int, int]],
) -> dict[str, dict[str, list[TableFile]]]:
    found: dict[str, dict[str, list[TableFile]]] = {}
    for path, size, changed_at in sorted(listed):
        place = _PLACE.search(path)
        if place is not None and _is_day(place[3]):
            # Without the lake's own folder, so that a lake can be moved.
            file = TableFile(f"{place[1]}{place[2]}", size, changed_at)
            found.setdefault(place[1], {}).setdefault(place[3], []).append(file)
    return found


def _empty_files(folder: str) -> Iterator[str]:
    """Files without contents on a disk of this machine: Spark skips them without a word.

    Object stores and HDFS are not searched: a file that was cut short does not appear there.
    """
    for root, folders, names in os.walk(folder.removeprefix("file://")):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        for name in names:
            path = os.path.join(root, name)
            if name.endswith(".parquet") and name[0] not in "._" and _is_empty(path):
                yield path


def _is_empty(path: str) -> bool:
    try:
        return os.path.getsize(path) == 0
    except FileNotFoundError:  # replaced since
        return False


def _is_day(text: str) -> bool:
    """False for a folder such as dt=2030-02-30, which no archiver writes."""
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
