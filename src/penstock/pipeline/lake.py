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

from penstock.domain.lake.layout import TABLES
from penstock.pipeline.frames import frame_of
from penstock.pipeline.registry import derived_tables
from penstock.pipeline.schemas import DT, Derived, conform, schema_of

DERIVED_FOLDER = "derived"
# Numbers as differences, and the fastest compression: a fifth faster to write, and smaller.
_PARQUET = {"parquet.writer.version": "v2", "parquet.compression.codec.zstd.level": "1"}
_PLACE = re.compile(rf"/([a-z_]+)(/{DT}=(\d{{4}}-\d\d-\d\d)/.+)$")


class LakeFile(msgspec.Struct, frozen=True, order=True):
    path: str  # below the folder of the lake or of what is derived
    size: int
    changed_at: int


class Lake:
    def __init__(self, spark: SparkSession, folder: str, *, derived: str | None = None) -> None:
        self.spark = spark
        self.folder = folder.rstrip("/")
        self.derived = (derived or f"{self.folder}/{DERIVED_FOLDER}").rstrip("/")
        self._seen: dict[str, dict[str, dict[str, list[LakeFile]]]] = {}
        self._counted: dict[tuple[str, str], int] = {}

    def refresh(self) -> None:
        """Look anew at what there is."""
        self._seen.clear()
        self._counted.clear()

    def is_empty(self) -> bool:
        """Whether the broker has not written anything there."""
        return not any(self.files(table) for table in TABLES)

    def read(self, table: str, days: Collection[str] | None = None) -> DataFrame:
        """The rows of those days, or of all; a table that is not there yet is empty."""
        bronze = TABLES.get(table)
        schema = derived_tables()[table].schema if bronze is None else schema_of(bronze)
        try:
            found = self.spark.read.schema(schema).parquet(self._path(table))
            found.schema  # noqa: B018 -- a session elsewhere looks at the files only when asked
        except AnalysisException as error:
            if not is_missing(error):
                raise
            return frame_of(self.spark, [], schema)
        return found if days is None else found.where(F.col(DT).isin(sorted(days)))

    def files(self, table: str) -> dict[str, list[LakeFile]]:
        """What there is of a table, by day; of the lake's own as it was when first asked."""
        folder = self.folder if table in TABLES else self.derived
        if folder not in self._seen:
            self._seen[folder] = _by_table(self._listed(folder))
        return self._seen[folder].get(table, {})

    def replace(self, table: Derived, rows: DataFrame, days: Collection[str]) -> None:
        """Whatever the table has of those days is gone afterwards, except for these rows."""
        before = self.files(table.name)
        wanted = conform(rows, table).where(F.col(DT).isin(sorted(days)))
        if not table.is_large:
            wanted = wanted.repartition(DT)  # one file a day
        # Days are swapped at the end: whoever reads meanwhile, or after a kill, finds the old ones.
        wanted.write.partitionBy(DT).mode("overwrite").options(
            partitionOverwriteMode="dynamic", **_PARQUET
        ).parquet(self._path(table.name))
        self._forget(table.name)
        after = self.files(table.name)
        # Spark swaps only days of which there are rows.
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

    def _forget(self, table: str) -> None:
        self._seen.pop(self.derived, None)
        self._counted = {key: rows for key, rows in self._counted.items() if key[0] != table}

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
        except AnalysisException as error:
            if not is_missing(error):
                raise
            return []
        return [(row.path, int(row.length), int(row.changed_at)) for row in listed]


def is_missing(error: AnalysisException) -> bool:
    """There is no such folder yet, which is no mistake."""
    return error.getCondition() == "PATH_NOT_FOUND"


def _by_table(
    listed: Iterable[tuple[str, int, int]],
) -> dict[str, dict[str, list[LakeFile]]]:
    found: dict[str, dict[str, list[LakeFile]]] = {}
    for path, size, changed_at in sorted(listed):
        place = _PLACE.search(path)
        if place is not None:
            # Without the folder of the lake, so that a lake can be moved.
            file = LakeFile(f"{place[1]}{place[2]}", size, changed_at)
            found.setdefault(place[1], {}).setdefault(place[3], []).append(file)
    return found
