"""Throughput, times, failures and backlog: per minute, hour and day, of queues, kinds, routes and
workers.

The histograms stay in the table, so that any rows of it can be added up and percentiles read off
the sum; see pipeline/histogram.py.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from penstock.domain.limits import MINUTE, NUL
from penstock.pipeline.job import Job, Output, Tables
from penstock.pipeline.rolling import (
    DIMENSIONS,
    MEASURES,
    NOBODY,
    OUTCOMES,
    PARTIAL,
    SUMS,
    merged,
    partials,
)
from penstock.pipeline.schemas import Derived, double, histogram, long, text
from penstock.pipeline.settings import JobSettings

ROLLUPS = Derived(
    name="rollups",
    meaning="what ended in a minute, an hour or a day, by queue, kind, route or worker",
    fields=(
        text("grain", "minute, hour or day"),
        long("at", "when it began"),
        text("dimension", "queue, kind, route or worker"),
        text("name", "of which one"),
        long("finished", "endings"),
        long("done", "endings as done"),
        long("dead", "endings as dead"),
        long("cancelled", "endings as cancelled"),
        long("attempts", "claims that count, of what ended"),
        long("failures", "attempts that failed, of what ended"),
        long("crashes", "workers that died with a message, of what ended"),
        long("bytes", "size of the bodies of what ended"),
        double("per_second", "throughput: endings per second"),
        double("failure_ratio", "failures to attempts; null: there was no attempt"),
        long("backlog", "of queues: the most that were ready; null: not known"),
        long("wait_p50_ms", "half waited no longer for their first claim"),
        long("wait_p95_ms", "the same for 95 of 100"),
        long("wait_p99_ms", "the same for 99 of 100"),
        histogram("wait_histogram", "how many waited how long"),
        long("service_p50_ms", "half of what is done took no longer"),
        long("service_p95_ms", "the same for 95 of 100"),
        long("service_p99_ms", "the same for 99 of 100"),
        histogram("service_histogram", "how many took how long"),
    ),
)


def rollups(tables: Tables, settings: JobSettings) -> DataFrame:
    ended = narrowed(tables["lifecycle"]).mapInArrow(partials, from_arrow_schema(PARTIAL))
    return rolled(ended.unionByName(sampled(tables["backlog"]), allowMissingColumns=True))


def rolled(minutes: DataFrame) -> DataFrame:
    """Sums per minute and name, as many as there are of each, to rollups."""
    in_order = minutes.repartition("dimension", "name").sortWithinPartitions(
        "dimension", "name", "minute"
    )
    return in_order.mapInArrow(merged, StructType(ROLLUPS.schema.fields[:-1])).withColumn(
        "dt", F.date_format(F.timestamp_millis("at"), "yyyy-MM-dd")
    )


def narrowed(lifecycle: DataFrame) -> DataFrame:
    """What is added up, as little as it can be: every row of it goes to Python.

    The names go as one text: what each of four texts costs on the way is more than all the rest.
    """
    names = [F.coalesce(F.col(name), F.lit(NOBODY)) for name in DIMENSIONS]
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


def sampled(backlog: DataFrame) -> DataFrame:
    """As if they were endings, of which there are none: so a queue that stands still is seen."""
    return backlog.select(
        F.lit("queue").alias("dimension"),
        F.col("queue").alias("name"),
        F.expr(f"at div {MINUTE}").alias("minute"),
        F.col("ready").alias("backlog"),
        *(F.lit(0).cast("long").alias(name) for name in SUMS),
    )


JOB = Job(
    name="rollups",
    summary="per minute, hour and day: throughput, wait and service, failures, backlog",
    inputs=("lifecycle", "backlog"),
    outputs=(Output(ROLLUPS, rollups),),
)
