"""Rollups kept fresh: what the archiver adds to the lake is added to them, again and again.

    files of history, backlog ──▶ sums per minute of a batch, kept ──▶ rollups of its days

Each batch has a number, which Spark gives, and keeps what it has to add under that number.  A batch
that was killed is made once more, of the same rows under the same number, and what it had kept is
replaced: so nothing is ever counted twice, and rollups are always the sum of what is kept.  Numbers
beyond that of the batch are of an earlier checkpoint, and do not count.

Now and then a batch puts together all that was kept before it; then those places are free for later
batches, so that there are never more than a few of them.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StringType, StructField, StructType

from penstock.domain.lake.layout import BACKLOG, HISTORY, LakeTable
from penstock.domain.limits import MINUTE
from penstock.pipeline.jobs.lifecycle import lifecycle
from penstock.pipeline.jobs.rollups import ROLLUPS, narrowed, rolled, sampled
from penstock.pipeline.lake import Lake
from penstock.pipeline.rolling import PARTIAL, partials
from penstock.pipeline.schemas import DT, schema_of
from penstock.pipeline.settings import JobSettings

FOLDER = "stream"  # below what is derived: the checkpoint and what batches keep
FOLD = 50  # after so many batches all that is kept is put together
BATCH, FOLDED = "batch", "folded"
TABLES = (HISTORY, BACKLOG)
_SCHEMA = StructType([*from_arrow_schema(PARTIAL).fields, StructField(DT, StringType())])
_OF_SAMPLES = ("queue", "at", "ready")


def lake_stream(
    spark: SparkSession, folder: str, table: LakeTable, *, most_files: int
) -> DataFrame:
    """The rows of a table of the lake, and those that are added to it; it need not be there yet."""
    base = folder.rstrip("/")  # of the lake: Spark wants it to be there
    reader = spark.readStream.schema(schema_of(table)).option("basePath", base)
    return reader.option("maxFilesPerTrigger", most_files).parquet(f"{base}/{table.name}/{DT}=*")


def start(
    lake: Lake,
    history: DataFrame,
    backlog: DataFrame,
    *,
    every_s: float | None,
    name: str = "lake",
) -> StreamingQuery:
    """`every_s`: None adds what is there and ends.  `name`: where it comes from; each has its own
    checkpoint.
    """
    folder = f"{lake.derived}/{FOLDER}/{name}"
    add = adding(lake.folder, lake.derived, folder)
    both = feed(history, backlog).writeStream.foreachBatch(add)
    writer = both.option("checkpointLocation", f"{folder}/checkpoint")
    if every_s is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{every_s:g} seconds").start()


def feed(history: DataFrame, backlog: DataFrame) -> DataFrame:
    """Endings and samples of the backlog in one stream, so that one batch has both."""
    ended = narrowed(lifecycle({"history": history}, JobSettings()))
    return ended.unionByName(backlog.select(*_OF_SAMPLES), allowMissingColumns=True)


def adding(lake_folder: str, derived: str, folder: str) -> Callable[[DataFrame, int], None]:
    """What is done with a batch; it may be done elsewhere, so it takes only texts along."""

    def add(batch: DataFrame, number: int) -> None:
        lake = Lake(batch.sparkSession, lake_folder, derived=derived)
        batch.persist()  # looked at twice, and read once
        try:
            added = _keep(batch, folder, number)
        finally:
            batch.unpersist()
        days = [row[DT] for row in added.select(DT).distinct().collect()]
        if days:
            kept = _kept(lake.spark, folder, _first(number), number).where(
                F.col(DT).isin(sorted(days))
            )
            lake.replace(ROLLUPS, rolled(kept.drop(DT)), days)

    return add


def _partial(batch: DataFrame) -> DataFrame:
    is_sample = F.col("at").isNotNull()
    ended = batch.where(~is_sample).drop(*_OF_SAMPLES)
    added = ended.mapInArrow(partials, from_arrow_schema(PARTIAL))
    samples = batch.where(is_sample).select(*_OF_SAMPLES)
    return added.unionByName(sampled(samples), allowMissingColumns=True).withColumn(
        DT, F.date_format(F.timestamp_millis(F.col("minute") * MINUTE), "yyyy-MM-dd")
    )


def _keep(batch: DataFrame, folder: str, number: int) -> DataFrame:
    """Under the number of the batch, in place of whatever was there."""
    path = _path(folder, number)
    _partial(batch).coalesce(1).write.mode("overwrite").parquet(path)
    added = batch.sparkSession.read.schema(_SCHEMA).parquet(path)
    if number and _first(number) == number:
        before = _kept(batch.sparkSession, folder, _first(number - 1), number - 1)
        all_kept = before.unionByName(added)
        all_kept.coalesce(1).write.mode("overwrite").parquet(_path(folder, number, FOLDED))
    return added


def _kept(spark: SparkSession, folder: str, first: int, last: int) -> DataFrame:
    """All up to the last one; the first one has put those before it together."""
    begin = _path(folder, first, FOLDED if first else BATCH)
    others = [_path(folder, number) for number in range(first + 1, last + 1)]
    return spark.read.schema(_SCHEMA).parquet(begin, *others)


def _first(number: int) -> int:
    """The batch that has put all before it together."""
    return number // FOLD * FOLD


def _path(folder: str, number: int, kind: str = BATCH) -> str:
    """Used again only when a batch that may be made once more does not need it any more."""
    place = number % (2 * FOLD) if kind == BATCH else number // FOLD % 2
    return f"{folder}/kept/{kind}={place}"
