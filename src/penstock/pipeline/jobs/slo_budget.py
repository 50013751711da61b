"""What is left of the error budget: 30 days up to each day."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from penstock.pipeline.job import Job, Output, Tables
from penstock.pipeline.jobs.slo import burn
from penstock.pipeline.schemas import DT, Derived, double, integer, long, text
from penstock.pipeline.settings import JobSettings

WINDOW_DAYS = 30

BUDGET = Derived(
    name="slo_budget",
    meaning="the budget of 30 days, as it stands at the end of each",
    fields=(
        text("queue", "name of the queue"),
        text("objective", "wait, service, total or success"),
        double("percent", "so many shall meet it"),
        integer("days", "days there is anything of"),
        long("messages", "of these days, that the target is about"),
        long("bad", "that missed it"),
        double("burn", "share of the budget that is used"),
        double("left", "share of the budget that is left; below 0: overdrawn"),
    ),
)


def budget(tables: Tables, settings: JobSettings) -> DataFrame:
    """By the target as it was last set: an earlier day's counts stay those of its own target."""
    day = F.unix_date(F.to_date(DT)).alias("day")
    window = (
        Window.partitionBy("queue", "objective")
        .orderBy("day")
        .rangeBetween(1 - WINDOW_DAYS, Window.currentRow)
    )
    summed = (
        tables["slo"]
        .select("*", day)
        .select(
            DT,
            "queue",
            "objective",
            "percent",
            F.count(F.lit(1)).over(window).alias("days"),
            F.sum("messages").over(window).alias("messages"),
            F.sum("bad").over(window).alias("bad"),
        )
    )
    used = burn(F.col("bad"), F.col("messages"))
    return summed.withColumn("burn", used).withColumn("left", 1 - F.col("burn"))


JOB = Job(
    name="slo_budget",
    summary="what is left of the error budgets of 30 days",
    inputs=("slo",),
    outputs=(Output(BUDGET, budget),),
    lookback_days=WINDOW_DAYS - 1,
)
