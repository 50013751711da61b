"""What is left of the error budget over the 30 days up to each day."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.pipeline.job import JobOutput, PipelineJob, Tables
from penstock.pipeline.jobs.slo import burn
from penstock.pipeline.schemas import DT, ComputedTable, double, integer, long, text

WINDOW_DAYS = 30

BUDGET = ComputedTable(
    name="slo_budget",
    meaning="the error budget of 30 days, at the end of each day",
    fields=(
        text("queue", "name of the queue"),
        text("objective", "wait, service, total or success"),
        double("percent", "percentage of messages that should meet it"),
        integer("days", "days with data"),
        long("messages", "messages of these days that the target applies to"),
        long("bad", "messages that missed it"),
        double("burn", "share of the budget that is used"),
        double("left", "share of the budget that is left; below 0: overdrawn"),
    ),
)


def budget(tables: Tables, settings: PipelineSettings) -> DataFrame:
    """Uses the latest target; earlier days keep the counts by the target of their time."""
    day = F.unix_date(F.to_date(DT))
    window = (
        Window.partitionBy("queue", "objective")
        .orderBy("day")
        .rangeBetween(1 - WINDOW_DAYS, Window.currentRow)
    )
    sums = {name: F.sum(name).over(window) for name in ("messages", "bad")}
    summed = tables["slo"].withColumn("day", day)
    summed = summed.withColumns({"days": F.count(F.lit(1)).over(window), **sums})
    used = burn(F.col("bad"), F.col("messages"))
    return summed.withColumn("burn", used).withColumn("left", 1 - F.col("burn"))


JOB = PipelineJob(
    name="slo_budget",
    summary="what is left of the error budgets over 30 days",
    inputs=("slo",),
    outputs=(JobOutput(BUDGET, budget),),
    lookback_days=WINDOW_DAYS - 1,
)
