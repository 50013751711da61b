"""Keeps rollups up to date: adds what the archiver writes to the lake, batch by batch.

    files of history, backlog ──▶ sums per minute of a batch, stored ──▶ rollups of its days

Spark numbers the batches, and each batch stores its sums under its number.  A batch that was killed
is repeated with the same rows and the same number, and replaces the sums it had stored: no row is
counted twice, and rollups are always the total of the stored sums.  Numbers beyond the current
batch belong to an earlier checkpoint and do not count.

After every FOLD batches, one batch stores the sum of all batches before it, whose folders are then
reused, so that there are never many.  This sum keeps the latest DAYS days only, so that it does not
grow for ever.

Two kinds of days are computed from their source instead, as a run computes them: days that the sum
no longer keeps, when a late row arrives, and days whose files were replaced.  Spark does not read a
file of the same name again, so the sums still count the rows of the old one.  To notice this, each
batch stores which files its days have, as further rows of its sums.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StringType, StructField, StructType

from penstock.domain.lake.layout import BACKLOG, HISTORY, LakeTable, midnight_of
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.domain.limits import DAY
from penstock.pipeline.checks import sound_rows
from penstock.pipeline.files.listing import files_of_days
from penstock.pipeline.jobs.lifecycle import lifecycle
from penstock.pipeline.jobs.rollups import (
    ROLLUPS,
    backlog_samples,
    day_text,
    in_order,
    narrow,
    roll_up,
    rollups,
)
from penstock.pipeline.lake import SparkLake
from penstock.pipeline.merged_sums import combine_partials
from penstock.pipeline.minute_sums import PARTIAL, partials
from penstock.pipeline.schemas import DT, schema_of
from penstock.pipeline.spark.frames import frame_of

FOLDER = "stream"  # in the tables folder: the checkpoint and the stored sums
FORMAT = 2  # of the stored sums; raise it when they change: streams then begin anew
FOLD = 50  # batches after which the stored sums are added up
DAYS = 7  # days with rows whose sums are kept: rows for earlier ones are rare
BATCH, FOLDED = "batch", "folded"
TABLES = (HISTORY, BACKLOG)
NEWEST = "newest"  # the metric of a batch's newest row
_SCHEMA = StructType([*from_arrow_schema(PARTIAL).fields, StructField(DT, StringType())])
_OF_SAMPLES = ("queue", "at", "ready")

FILE = "file"  # the dimension of the rows that name files
# The rows of a table on those days, at the source of the stream.
ReadDays = Callable[[SparkLake, LakeTable, list[str]], DataFrame]
FilesOf = Callable[[list[str]], set[tuple[str, str]]]
# Entered while the rollups are replaced.
Locked = Callable[[], AbstractContextManager[object]]


def lake_stream(
    spark: SparkSession, folder: str, table: LakeTable, *, most_files: int
) -> DataFrame:
    """A stream of the rows of a lake table, now and later; the table need not exist yet."""
    base = folder.rstrip("/")  # of the lake: Spark needs it to exist
    reader = spark.readStream.schema(schema_of(table)).option("basePath", base)
    return reader.option("maxFilesPerTrigger", most_files).parquet(f"{base}/{table.name}/{DT}=*")


def days_of_lake(lake: SparkLake, table: LakeTable, days: list[str]) -> DataFrame:
    return lake.read(table.name, days)


def files_of_lake(lake: SparkLake, days: list[str]) -> set[tuple[str, str]]:
    tables = (files_of_days(lake.spark, lake.folder, table.name, days) for table in TABLES)
    return {file for files in tables for file in files}


def no_files(lake: SparkLake, days: list[str]) -> set[tuple[str, str]]:
    return set()


class StreamSource(NamedTuple):
    """Where a stream can read whole days."""

    read: ReadDays
    files: Callable[[SparkLake, list[str]], set[tuple[str, str]]]  # day, and a text for each file


LAKE = StreamSource(days_of_lake, files_of_lake)


def start(
    lake: SparkLake,
    history: DataFrame,
    backlog: DataFrame,
    *,
    every_s: float | None,
    name: str = "lake",
    source: StreamSource = LAKE,
    locked: Locked = nullcontext,
) -> StreamingQuery:
    """`every_s`: None adds the existing rows and ends.  `name`: of the checkpoint."""
    folder = f"{lake.tables_folder}/{FOLDER}/{name}-{FORMAT}"
    add = batch_adder(
        lake.folder,
        lake.tables_folder,
        folder,
        is_delta=lake.is_delta,
        source=source,
        locked=locked,
    )
    newest = F.max(F.coalesce("finished_at", "at")).alias("at")
    both = feed(history, backlog).observe(NEWEST, newest)
    writer = both.writeStream.foreachBatch(add).option("checkpointLocation", f"{folder}/checkpoint")
    if every_s is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{every_s:g} seconds").start()


def feed(history: DataFrame, backlog: DataFrame) -> DataFrame:
    """Endings and backlog samples in one stream, so that a batch has both."""
    ended = narrow(lifecycle({"history": history}, PipelineSettings()))
    samples = sound_rows(backlog, BACKLOG).select(*_OF_SAMPLES)
    return ended.unionByName(samples, allowMissingColumns=True)


def batch_adder(
    lake_folder: str,
    tables_folder: str,
    folder: str,
    *,
    is_delta: bool = False,
    source: StreamSource = LAKE,
    locked: Locked = nullcontext,
) -> Callable[[DataFrame, int], None]:
    """The function that adds a batch; it may run elsewhere, so it captures no session."""

    def add(batch: DataFrame, number: int) -> None:
        lake = SparkLake(
            batch.sparkSession, lake_folder, tables_folder=tables_folder, is_delta=is_delta
        )
        days = _keep(batch, folder, number, lambda days: source.files(lake, days))
        if not days:
            return
        kept = _read_sums(lake.spark, folder, _first(number), number, days)
        first_day = _first_day(lake.spark, folder, _first(number))
        with locked():
            changed = _changed_days(kept, source.files(lake, days))
            whole = [day for day in days if day < first_day or day in changed]
            added = [day for day in days if day not in whole]
            if added:
                sums = kept.where(F.col(DT).isin(added) & (F.col("dimension") != FILE))
                lake.replace(ROLLUPS, roll_up(sums.drop(DT)), added)
            if whole:
                lake.replace(ROLLUPS, _compute_days(lake, whole, source.read), whole)
        if _is_fold(number):
            lake.vacuum([ROLLUPS.name])

    return add


def _changed_days(kept: DataFrame, files: set[tuple[str, str]]) -> set[str]:
    """Days of which a file was replaced or removed since a batch has seen it."""
    seen = kept.where(F.col("dimension") == FILE).select(DT, "name").distinct().collect()
    return {day for day, name in seen if (day, name) not in files}


def _compute_days(lake: SparkLake, days: list[str], read_days: ReadDays) -> DataFrame:
    """The rollups of whole days, from the rows at the source."""
    history, backlog = (read_days(lake, table, days) for table in TABLES)
    settings = PipelineSettings()
    ended = lifecycle({HISTORY.name: history}, settings)
    return rollups({"lifecycle": ended, BACKLOG.name: backlog}, settings)


def _partial(batch: DataFrame) -> DataFrame:
    is_sample = F.col("at").isNotNull()
    ended = batch.where(~is_sample).drop(*_OF_SAMPLES)
    added = ended.mapInArrow(partials, from_arrow_schema(PARTIAL))
    samples = batch.where(is_sample).select(*_OF_SAMPLES)
    return _with_day(added.unionByName(backlog_samples(samples)))


def _with_day(sums: DataFrame) -> DataFrame:
    return sums.withColumn(DT, day_text(F.col("day")))


def _keep(batch: DataFrame, folder: str, number: int, files_of: FilesOf) -> list[str]:
    """Store the sums under the batch's number, replacing what was there; returns their days."""
    spark, path = batch.sparkSession, _path(folder, number)
    batch.persist()  # used twice, read once
    sums = _partial(batch).persist()
    try:
        days = sorted(row[DT] for row in sums.select(DT).distinct().collect())
        files = _file_rows(spark, files_of(days) if days else set())
        whole = sums.unionByName(files)
        whole.coalesce(1).write.mode("overwrite").parquet(path)
    finally:
        sums.unpersist()
        batch.unpersist()
    if _is_fold(number):
        before = _read_sums(spark, folder, _first(number - 1), number - 1)
        added = spark.read.schema(_SCHEMA).parquet(path)
        _fold(before.unionByName(added), _path(folder, number, FOLDED))
    return days


def _file_rows(spark: SparkSession, files: set[tuple[str, str]]) -> DataFrame:
    """As rows of sums that add nothing."""
    rows = [
        {"dimension": FILE, "name": name, "day": midnight_of(day) // DAY, DT: day}
        for day, name in sorted(files)
    ]
    return frame_of(spark, rows, _SCHEMA)


def _fold(sums: DataFrame, path: str) -> None:
    """Store one row per name and day, of the latest days."""
    latest = sums.select(DT).distinct().orderBy(F.desc(DT)).limit(DAYS).collect()
    recent = sums.where(F.col(DT).isin([row[DT] for row in latest])).drop(DT)
    combined = in_order(recent).mapInArrow(combine_partials, from_arrow_schema(PARTIAL))
    _with_day(combined).coalesce(1).write.mode("overwrite").partitionBy(DT).parquet(path)


def _first_day(spark: SparkSession, folder: str, first: int) -> str:
    """The first day whose sums are all kept, "" if no day was left out."""
    if not first:
        return ""
    folded = spark.read.schema(_SCHEMA).parquet(_path(folder, first, FOLDED))
    days = sorted(row[DT] for row in folded.select(DT).distinct().collect())
    return days[0] if len(days) >= DAYS else ""


def _read_sums(
    spark: SparkSession, folder: str, first: int, last: int, days: list[str] | None = None
) -> DataFrame:
    """The sums of all batches up to `last`; `first` holds those of all before it."""
    begin = spark.read.schema(_SCHEMA).parquet(_path(folder, first, FOLDED if first else BATCH))
    others = [_path(folder, number) for number in range(first + 1, last + 1)]
    if others:
        begin = begin.unionByName(spark.read.schema(_SCHEMA).parquet(*others))
    return begin if days is None else begin.where(F.col(DT).isin(days))


def _is_fold(number: int) -> bool:
    """True if the batch stores the sum of all before it."""
    return number > 0 and _first(number) == number


def _first(number: int) -> int:
    """The latest batch that stored the sum of all before it."""
    return number // FOLD * FOLD


def _path(folder: str, number: int, kind: str = BATCH) -> str:
    """A folder is reused only when no batch that may be repeated still needs it."""
    place = number % (2 * FOLD) if kind == BATCH else number // FOLD % 2
    return f"{folder}/kept/{kind}={place}"
