"""The lake and the computed tables, read and written through Spark by table and day.

    <lake>/<table>/dt=…             the lake: written by the archiver, never changed here
    <tables folder>/<table>/dt=…    the jobs' tables: can be deleted and computed again

Everything goes through Spark, so the folders may be anywhere that Spark can reach, and the session
may run on another machine (Spark Connect).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegralType, MapType, StructField, StructType

from penstock.domain.errors import InvalidRequest
from penstock.domain.lake.layout import TABLES
from penstock.domain.lake.places import (
    is_object_store,
    join,
    local_path,
    scheme_of,
    spark_url,
)
from penstock.pipeline.files.delta_tables import DeltaTables
from penstock.pipeline.files.listing import DayFiles, files_by_day, read_folders, summed_by_day
from penstock.pipeline.registry import computed_tables
from penstock.pipeline.schemas import DT, ComputedTable, conform, schema_of
from penstock.pipeline.spark.errors import SPARK_ERRORS
from penstock.pipeline.spark.frames import frame_of
from penstock.pipeline.spark.progress import is_remote

TABLES_FOLDER = "derived"
# Delta encoding and the fastest compression: a fifth faster to write, and smaller.
_PARQUET = {"parquet.writer.version": "v2", "parquet.compression.codec.zstd.level": "1"}
# Of whole numbers: looking each one up in a dictionary takes longer than all their encoding.
_NO_DICTIONARY = "parquet.enable.dictionary#{}"


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
        self._seen: dict[str, dict[str, DayFiles]] = {}
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
        if self._delta.is_delta_table(table):
            return self._read_version(table, schema, days)
        path = self._path(table)
        wanted = None if days is None else sorted(set(days) & set(self.files(table)))
        if wanted is not None and not wanted:
            return frame_of(self.spark, [], schema)
        # Spark keeps a list of all files of the folders that it is given.
        folders = [path] if wanted is None else [f"{path}/{DT}={day}" for day in wanted]
        return read_folders(self.spark, folders, schema, base=path)

    def files(self, table: str) -> dict[str, DayFiles]:
        """The files of a table by day, as of the first call since `refresh`."""
        if table not in self._seen and self._delta.is_delta_table(table):
            self._seen[table] = summed_by_day(table, self._delta.list_files(table))
        elif table not in self._seen:
            folder = self.folder if table in TABLES else self.tables_folder
            self._seen[table] = files_by_day(self.spark, folder, table)
        return self._seen[table]

    def replace(self, table: ComputedTable, rows: DataFrame, days: Collection[str]) -> None:
        """Replace the rows of those days with these."""
        self._replace(table, conform(rows, table).where(F.col(DT).isin(sorted(days))), days)

    def replace_changed(self, table: ComputedTable, rows: DataFrame, days: Collection[str]) -> None:
        """The same, but the files of a day that has the same rows already stay.

        So jobs that read the table need not compute that day again.  For small tables.
        """
        if not set(days) & set(self.files(table.name)):
            self.replace(table, rows, days)
            return
        wanted = conform(rows, table).where(F.col(DT).isin(sorted(days))).cache()
        try:
            changed = self._changed_days(table, wanted, days)
            if changed:
                self._replace(table, wanted.where(F.col(DT).isin(changed)), changed)
        finally:
            wanted.unpersist()

    def _changed_days(
        self, table: ComputedTable, rows: DataFrame, days: Collection[str]
    ) -> list[str]:
        """Days whose rows the table does not have, or whose files cannot be read."""
        new, files = _digests(rows), self.files(table.name)
        try:
            old = _digests(self.read(table.name, days))
        except SPARK_ERRORS:
            return sorted(days)
        return [
            day
            for day in sorted(days)
            if new.get(day) != old.get(day) or (day in files and files[day].empty)
        ]

    def _replace(self, table: ComputedTable, wanted: DataFrame, days: Collection[str]) -> None:
        if not table.is_large:
            wanted = wanted.repartition(DT)  # one file per day
        if self.is_delta or self._delta.is_delta_table(table.name):
            self._commit(table, wanted, days)
            return
        self._seen.pop(table.name, None)
        before = self.files(table.name)
        # Days are swapped at the end: until then, and after a kill, readers find the old rows.
        self._write(wanted, table)
        self._forget(table.name)
        after = self.files(table.name)
        # Spark swaps only days that have new rows.
        left = [day for day in days if day in before and before[day] == after.get(day)]
        for day in left:
            self._clear(table, day)
        if left:
            self._forget(table.name)

    def rewrite(self, table: ComputedTable, day: str, *, files: int) -> None:
        """Put the rows of a day into this number of files; until then readers find the old ones."""
        rows = conform(self.read(table.name, [day]).coalesce(files), table)
        if self._delta.is_delta_table(table.name):
            self._commit(table, rows, [day])
        else:
            self._write(rows, table)
        self._forget(table.name)

    def counts(self, tables: Collection[str], days: Collection[str]) -> dict[str, dict[str, int]]:
        """Rows by day and table."""
        unknown = {t: [d for d in days if (t, d) not in self._counted] for t in tables}
        parts = [self._rows_by_day(table, unknown[table]) for table in tables if unknown[table]]
        if parts:
            found = reduce(DataFrame.unionByName, parts).collect()
            counted = {(row["table"], row[DT]): int(row["rows"]) for row in found}
            self._counted |= {(t, d): counted.get((t, d), 0) for t in tables for d in unknown[t]}
        return {day: {table: self._counted[table, day] for table in tables} for day in days}

    def _write(self, rows: DataFrame, table: ComputedTable) -> None:
        rows.write.partitionBy(DT).mode("overwrite").options(
            partitionOverwriteMode="dynamic", **_parquet_options(table)
        ).parquet(self._path(table.name))

    def _rows_by_day(self, table: str, days: Collection[str]) -> DataFrame:
        rows = self.read(table, days).groupBy(DT).agg(F.count(F.lit(1)).alias("rows"))
        return rows.withColumn("table", F.lit(table))

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
            rows.write.partitionBy(DT).mode("append").options(**_parquet_options(table)).parquet(
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
        self._seen.pop(table, None)
        self._counted = {key: rows for key, rows in self._counted.items() if key[0] != table}

    def _clear(self, table: ComputedTable, day: str) -> None:
        nothing = frame_of(self.spark, [], table.schema).drop(DT)
        nothing.write.mode("overwrite").parquet(f"{self._path(table.name)}/{DT}={day}")

    def _path(self, table: str) -> str:
        return f"{self.folder if table in TABLES else self.tables_folder}/{table}"


def _parquet_options(table: ComputedTable) -> dict[str, str]:
    columns = [path for field in table.schema.fields for path in _whole_numbers(field)]
    return _PARQUET | {_NO_DICTIONARY.format(path): "false" for path in columns}


def _whole_numbers(field: StructField) -> list[str]:
    """The paths of whole numbers in the files of a column."""
    if isinstance(field.dataType, MapType):
        return [f"{field.name}.key_value.{name}" for name in ("key", "value")]
    return [field.name] if isinstance(field.dataType, IntegralType) else []


def _digests(rows: DataFrame) -> dict[str, tuple[object, ...]]:
    """Of the rows of each day, in any order."""
    one = F.xxhash64(*rows.columns).cast("decimal(20, 0)")
    found = rows.groupBy(DT).agg(F.count(F.lit(1)).alias("rows"), F.sum(one).alias("hashes"))
    return {row[DT]: (row["rows"], row["hashes"]) for row in found.collect()}
