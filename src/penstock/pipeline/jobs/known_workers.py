"""Which workers were known on a day: their queues and the release that they run.

A worker registers once and may then run for weeks, so each day has the workers that registered on
it or within four weeks before.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.domain import worker as workers
from penstock.domain.lake.layout import FACTS
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.pipeline.checks import sound_rows
from penstock.pipeline.job import JobOutput, PipelineJob, Tables
from penstock.pipeline.schemas import DT, ComputedTable, long, text

KNOWN_DAYS = 28

KNOWN_WORKERS = ComputedTable(
    name="known_workers",
    meaning="workers that had registered by that day, up to four weeks before",
    fields=(
        text("worker", "id of the worker"),
        text("name", "its name"),
        text("queues", "the queues it claims from, as a JSON array in order; null: any"),
        text("release", "its label release; null: it has none"),
        long("registered_at", "when it registered"),
    ),
)


def known_workers(tables: Tables, settings: PipelineSettings) -> DataFrame:
    registered = sound_rows(tables["facts"], FACTS).where(F.col("kind") == workers.REGISTERED)
    days = F.sequence(F.to_date(DT), F.date_add(F.to_date(DT), KNOWN_DAYS - 1))
    return (
        registered.withColumn("day", F.explode(days))
        .groupBy(F.date_format("day", "yyyy-MM-dd").alias(DT), F.col("subject").alias("worker"))
        .agg(
            F.max_by(F.get_json_object("data", "$.name"), F.col("at")).alias("name"),
            F.max_by(_queues(), F.col("at")).alias("queues"),
            F.max_by(F.get_json_object("data", "$.labels.release"), F.col("at")).alias("release"),
            F.max("at").alias("registered_at"),
        )
    )


def _queues() -> Column:
    """Sorted, so that workers of the same queues are equal however they name them."""
    named = F.from_json(F.get_json_object("data", "$.queues"), "array<string>")
    return F.when(F.size(named) > 0, F.to_json(F.array_sort(named)))


JOB = PipelineJob(
    name="known_workers",
    summary="the workers of each day, with their queues and releases",
    # History adds days without any fact: the workers of the days before are known on these too.
    inputs=("facts", "history"),
    after=("quality",),
    outputs=(JobOutput(KNOWN_WORKERS, known_workers),),
    lookback_days=KNOWN_DAYS - 1,
    only_own_day=("history",),
)
