"""Keeps rollups up to date: adds what the archiver writes to the lake, batch by batch.

    files of history, backlog ──▶ sums per minute of a batch, stored ──▶ rollups of its days

Spark numbers the batches, and each batch stores its sums under its number.  A batch that was killed
is repeated with the same rows and the same number, and replaces the sums it had stored: no row is
counted twice, and rollups are always the total of the stored sums.  Numbers beyond the current
batch belong to an earlier checkpoint and do not count.

After every FOLD batches, one batch stores the sum of all batches before it, whose folders are then
reused, so that there are never many.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StringType, StructField, StructType

from penstock.domain.lake.layout import BACKLOG, HISTORY, LakeTable
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.domain.limits import MINUTE
from penstock.pipeline.checks import sound_rows
from penstock.pipeline.jobs.lifecycle import lifecycle
from penstock.pipeline.jobs.rollups import ROLLUPS, backlog_samples, narrow, roll_up
from penstock.pipeline.lake import SparkLake
from penstock.pipeline.minute_sums import PARTIAL, partials
from penstock.pipeline.schemas import DT, schema_of

FOLDER = "stream"  # in the tables folder: the checkpoint and the stored sums
FOLD = 50  # batches after which the stored sums are added up
BATCH, FOLDED = "batch", "folded"
TABLES = (HISTORY, BACKLOG)
_SCHEMA = StructType([*from_arrow_schema(PARTIAL).fields, StructField(DT, StringType())])
_OF_SAMPLES = ("queue", "at", "ready")


def lake_stream(
    spark: SparkSession, folder: str, table: LakeTable, *, most_files: int
) -> DataFrame:
    """A stream of the rows of a lake table, now and later; the table need not exist yet."""
    base = folder.rstrip("/")  # of the lake: Spark needs it to exist
    reader = spark.readStream.schema(schema_of(table)).option("basePath", base)
    return reader.option("maxFilesPerTrigger", most_files).parquet(f"{base}/{table.name}/{DT}=*")


def start(
    lake: SparkLake,
    history: DataFrame,
    backlog: DataFrame,
    *,
    every_s: float | None,
    name: str = "lake",
) -> StreamingQuery:
    """`every_s`: None adds the existing rows and ends.  `name`: the source, with its checkpoint."""
    folder = f"{lake.tables_folder}/{FOLDER}/{name}"
    add = batch_adder(lake.folder, lake.tables_folder, folder, is_delta=lake.is_delta)
    both = feed(history, backlog).writeStream.foreachBatch(add)
    writer = both.option("checkpointLocation", f"{folder}/checkpoint")
    if every_s is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{every_s:g} seconds").start()


def feed(history: DataFrame, backlog: DataFrame) -> DataFrame:
    """Endings and backlog samples in one stream, so that a batch has both."""
    ended = narrow(lifecycle({"history": history}, PipelineSettings()))
    samples = sound_rows(backlog, BACKLOG).select(*_OF_SAMPLES)
    return ended.unionByName(samples, allowMissingColumns=True)


def batch_adder(
    lake_folder: str, tables_folder: str, folder: str, *, is_delta: bool = False
) -> Callable[[DataFrame, int], None]:
    """The function that adds a batch; it captures only plain values, as it may run elsewhere."""

    def add(batch: DataFrame, number: int) -> None:
        lake = SparkLake(
            batch.sparkSession, lake_folder, tables_folder=tables_folder, is_delta=is_delta
        )
        batch.persist()  # used twice, read once
        try:
            added = _keep(batch, folder, number)
        finally:
            batch.unpersist()
        days = [row[DT] for row in added.select(DT).distinct().collect()]
        if days:
            kept = _kept(lake.spark, folder, _first(number), number).where(
                F.col(DT).isin(sorted(days))
            )
            lake.replace(ROLLUPS, roll_up(kept.drop(DT)), days)

    return add


def _partial(batch: DataFrame) -> DataFrame:
    is_sample = F.col("at").isNotNull()
    ended = batch.where(~is_sample).drop(*_OF_SAMPLES)
    added = ended.mapInArrow(partials, from_arrow_schema(PARTIAL))
    samples = batch.where(is_sample).select(*_OF_SAMPLES)
    return added.unionByName(backlog_samples(samples), allowMissingColumns=True).withColumn(
        DT, F.date_format(F.timestamp_millis(F.col("minute") * MINUTE), "yyyy-MM-dd")
    )


def _keep(batch: DataFrame, folder: str, number: int) -> DataFrame:
    """Store the sums under the batch's number, replacing what was there."""
    path = _path(folder, number)
    _partial(batch).coalesce(1).write.mode("overwrite").parquet(path)
    added = batch.sparkSession.read.schema(_SCHEMA).parquet(path)
    if number and _first(number) == number:
        before = _kept(batch.sparkSession, folder, _first(number - 1), number - 1)
        all_kept = before.unionByName(added)
        all_kept.coalesce(1).write.mode("overwrite").parquet(_path(folder, number, FOLDED))
    return added


def _kept(spark: SparkSession, folder: str, first: int, last: int) -> DataFrame:
    """The sums of all batches up to `last`; `first` holds those of all before it."""
    begin = _path(folder, first, FOLDED if first else BATCH)
    others = [_path(folder, number) for number in range(first + 1, last + 1)]
    return spark.read.schema(_SCHEMA).parquet(begin, *others)


def _first(number: int) -> int:
    """The latest batch that stored the sum of all before it."""
    return number // FOLD * FOLD


def _path(folder: str, number: int, kind: str = BATCH) -> str:
    """A folder is reused only when no batch that may be repeated still needs it."""
    place = number % (2 * FOLD) if kind == BATCH else number // FOLD % 2
    return f"{folder}/kept/{kind}={place}"
