"""Throughput, times, failures and backlog per minute, hour and day.

Computed for queues, kinds, routes and workers.  The table keeps the histograms, so that any rows
can be added up and percentiles be read from the sum; see pipeline/histogram.py.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from penstock.domain.lake.layout import BACKLOG
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.domain.limits import DAY, NUL
from penstock.pipeline.checks import sound_rows
from penstock.pipeline.job import JobOutput, PipelineJob, Tables
from penstock.pipeline.merged_sums import merge_partials
from penstock.pipeline.minute_sums import (
    DIMENSIONS,
    MEASURES,
    NO_NAME,
    OUTCOMES,
    PARTIAL,
    partials,
    samples,
)
from penstock.pipeline.schemas import DT, ComputedTable, double, histogram, long, text

_FILES_PER_DAY = 4  # at most; also how many tasks can add up a day

ROLLUPS = ComputedTable(
    name="rollups",
    meaning="endings per minute, hour or day, by queue, kind, route or worker",
    is_large=True,
    fields=(
        text("grain", "minute, hour or day"),
        long("at", "start of the minute, hour or day"),
        text("dimension", "queue, kind, route or worker"),
        text("name", "name of the queue, kind, route or worker"),
        long("finished", "endings"),
        long("done", "endings as done"),
        long("dead", "endings as dead"),
        long("cancelled", "endings as cancelled"),
        long("attempts", "claims that count, of ended messages"),
        long("failures", "attempts that failed, of ended messages"),
        long("crashes", "workers that crashed, of ended messages"),
        long("bytes", "size of the bodies of ended messages"),
        double("per_second", "throughput: endings per second"),
        double("failure_ratio", "failures divided by attempts; null: no attempts"),
        long("backlog", "for queues: the most ready messages; null: unknown"),
        long("wait_p50_ms", "median wait for the first claim"),
        long("wait_p95_ms", "95th percentile of that wait"),
        long("wait_p99_ms", "99th percentile of that wait"),
        histogram("wait_histogram", "histogram of the wait"),
        long("service_p50_ms", "median service time of done messages"),
        long("service_p95_ms", "95th percentile of that time"),
        long("service_p99_ms", "99th percentile of that time"),
        histogram("service_histogram", "histogram of the service time"),
    ),
)


def rollups(tables: Tables, settings: PipelineSettings) -> DataFrame:
    ended = narrow(tables["lifecycle"]).mapInArrow(partials, from_arrow_schema(PARTIAL))
    return roll_up(ended.unionByName(backlog_samples(sound_rows(tables["backlog"], BACKLOG))))


def roll_up(minutes: DataFrame) -> DataFrame:
    """`minutes`: rows of PARTIAL, in any order and as many as there are."""
    merged = in_order(minutes).mapInArrow(merge_partials, StructType(ROLLUPS.schema.fields[:-1]))
    return merged.withColumn(DT, day_text(F.expr(f"at div {DAY}")))


def day_text(day: Column) -> Column:
    """The day of a number of days since 1970."""
    return F.date_from_unix_date(day.cast("int")).cast("string")


def in_order(minutes: DataFrame) -> DataFrame:
    """All rows of a name and day in one partition, sorted as the sums need them.

    The rows of a day are in few partitions, so that they need no other shuffle before the write.
    """
    few = F.pmod(F.hash("dimension", "name"), F.lit(_FILES_PER_DAY))
    return minutes.repartition("day", few).sortWithinPartitions("dimension", "name")


def narrow(lifecycle: DataFrame) -> DataFrame:
    """Only the columns that are added up, as small as possible, because every row goes to Python.

    The four names are passed as one text: separately they would cost more than all the rest.
    """
    names = [F.coalesce(F.col(name), F.lit(NO_NAME)) for name in DIMENSIONS]
    outcome = F.lit(None).cast("byte")
    for number, name in enumerate(OUTCOMES):
        outcome = F.when(F.col("outcome") == name, F.lit(number).cast("byte")).otherwise(outcome)
    return lifecycle.select(
        F.concat(names[0], *(part for name in names[1:] for part in (F.lit(NUL), name))).alias(
            "names"
        ),
        outcome.alias("outcome"),
        "finished_at",
        *(f"{measure}_ms" for measure in MEASURES),
        "attempts",
        "failures",
        "crashes",
        F.col("size").alias("bytes"),
    )


def backlog_samples(backlog: DataFrame) -> DataFrame:
    """Backlog samples as rows with 0 endings, so that a queue without endings has rollups too."""
    found = backlog.select("queue", "at", "ready")
    return found.mapInArrow(samples, from_arrow_schema(PARTIAL))


JOB = PipelineJob(
    name="rollups",
    summary="per minute, hour and day: throughput, wait and service, failures, backlog",
    inputs=("lifecycle", "backlog"),
    outputs=(JobOutput(ROLLUPS, rollups),),
)
