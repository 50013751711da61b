"""The lake as the jobs see it: tables by name and day, read with their schemas, replaced by day.

    <lake>/<table>/dt=…             the broker's: written by the archiver, never touched here
    <derived>/<table>/dt=…          the jobs': can be thrown away and computed again

Everything goes through Spark, so a lake may be wherever Spark can reach, and a session may be
somebody else's (Spark Connect).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

import msgspec
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.domain.lake import TABLES
from penstock.pipeline.frames import frame_of
from penstock.pipeline.registry import derived_tables
from penstock.pipeline.schemas import DT, Derived, conform, schema_of

DERIVED_FOLDER = "derived"
_DAY = re.compile(rf"/{DT}=(\d{{4}}-\d\d-\d\d)/")


class LakeFile(msgspec.Struct, frozen=True, order=True):
    path: str  # below the folder of the lake or of what is derived
    size: int
    changed_at: int


class Lake:
    def __init__(self, spark: SparkSession, folder: str, *, derived: str | None = None) -> None:
        self.spark = spark
        self.folder = folder.rstrip("/")
        self.derived = (derived or f"{self.folder}/{DERIVED_FOLDER}").rstrip("/")

    def read(self, table: str, days: Collection[str] | None = None) -> DataFrame:
        """The rows of those days, or of all; a table that is not there yet is empty."""
        bronze = TABLES.get(table)
        schema = derived_tables()[table].schema if bronze is None else schema_of(bronze)
        try:
            found = self.spark.read.schema(schema).parquet(self._path(table))
            found.schema  # noqa: B018 -- a session elsewhere looks at the files only when asked
        except AnalysisException:
            return frame_of(self.spark, [], schema)
        return found if days is None else found.where(F.col(DT).isin(sorted(days)))

    def files(self, table: str) -> dict[str, list[LakeFile]]:
        """What there is of a table, by day."""
        by_day: dict[str, list[LakeFile]] = {}
        for path, size, changed_at in self._listed(self._path(table)):
            day = _DAY.search(path)
            if day is not None:
                # Without the folder of the lake, so that a lake can be moved.
                short = f"{table}{path[day.start() :]}"
                by_day.setdefault(day[1], []).append(LakeFile(short, size, changed_at))
        return {day: sorted(files) for day, files in sorted(by_day.items())}

    def replace(self, table: Derived, rows: DataFrame, days: Collection[str]) -> None:
        """Whatever the table has of those days is gone afterwards, except for these rows."""
        before = self.files(table.name)
        wanted = conform(rows, table).where(F.col(DT).isin(sorted(days)))
        if not table.is_large:
            wanted = wanted.repartition(DT)  # one file a day
        # Days are swapped at the end: whoever reads meanwhile, or after a kill, finds the old ones.
        wanted.write.partitionBy(DT).mode("overwrite").option(
            "partitionOverwriteMode", "dynamic"
        ).parquet(self._path(table.name))
        after = self.files(table.name)
        for day in days:
            # Spark swaps only days of which there are rows.
            if set(before.get(day, ())) & set(after.get(day, ())):
                self._clear(table, day)

    def counts(self, tables: Iterable[str], days: Collection[str]) -> dict[str, dict[str, int]]:
        """Rows by day and table."""
        found: dict[str, dict[str, int]] = {day: {} for day in days}
        for table in tables:
            rows = self.read(table, days).groupBy(DT).agg(F.count(F.lit(1)).alias("rows"))
            counted = {row[DT]: int(row["rows"]) for row in rows.collect()}
            for day in days:
                found[day][table] = counted.get(day, 0)
        return found

    def _clear(self, table: Derived, day: str) -> None:
        nothing = frame_of(self.spark, [], table.schema).drop(DT)
        nothing.write.mode("overwrite").parquet(f"{self._path(table.name)}/{DT}={day}")

    def _path(self, table: str) -> str:
        return f"{self.folder if table in TABLES else self.derived}/{table}"

    def _listed(self, path: str) -> list[tuple[str, int, int]]:
        """Path, size and instant of every file below; the contents are not read."""
        found = self.spark.read.format("binaryFile").option("recursiveFileLookup", "true")
        try:
            rows = found.load(path).select(
                "path", "length", F.unix_millis("modificationTime").alias("changed_at")
            )
            listed = rows.where(F.col("path").endswith(".parquet")).collect()
        except AnalysisException:  # there is no such folder yet
            return []
        return [(row.path, int(row.length), int(row.changed_at)) for row in listed]
