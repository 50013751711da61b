"""Service-level targets: how many messages met them, how fast the budget burns, and the causes.

A burn of 1 uses up exactly the budget: with a target of 99 percent, one message in a hundred misses
it.  A day with a burn of 10 uses up the budget of ten days.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.domain.lake.slo_targets import Objective, Target
from penstock.domain.limits import MINUTE
from penstock.domain.message.lifecycle import State
from penstock.pipeline.job import JobOutput, PipelineJob, Tables
from penstock.pipeline.schemas import DT, ComputedTable, double, integer, long, text

LATE_MS = MINUTE  # for queues without a target for the wait
WORST = 10  # offenders listed per queue, objective and dimension
DIMENSIONS = ("kind", "route", "worker")

_TARGET = (
    text("queue", "name of the queue"),
    text("objective", "wait, service, total or success"),
    long("limit_ms", "how long it may take; null: success"),
    double("percent", "percentage of messages that should meet it"),
)

SLO = ComputedTable(
    name="slo",
    meaning="how many messages met the targets, per day",
    fields=(
        *_TARGET,
        long("messages", "messages that the target applies to"),
        long("bad", "messages that missed it"),
        double("good_percent", "percentage that met it"),
        double("burn", "share of the day's budget that was used; 1: exactly all of it"),
        long("worst_hour_at", "the hour with the most misses"),
        double("worst_hour_burn", "the burn of that hour"),
    ),
)

OFFENDERS = ComputedTable(
    name="slo_offenders",
    meaning="kinds, routes and workers behind most of the messages that missed a target",
    fields=(
        text("queue", "name of the queue"),
        text("objective", "wait, service, total or success"),
        text("dimension", "kind, route or worker"),
        text("name", "name of the kind, route or worker"),
        long("bad", "its messages that missed the target"),
        double("share", "its share of all misses"),
        integer("rank", "1 is the worst"),
    ),
)


def slo(tables: Tables, settings: PipelineSettings) -> DataFrame:
    hours = _with_misses(tables["lifecycle"], settings).groupBy(
        DT, *_names(), F.expr("finished_at div 3600000 * 3600000").alias("hour_at")
    )
    counted = hours.agg(F.count(F.lit(1)).alias("messages"), F.count_if("is_bad").alias("bad"))
    worst = F.struct("bad", (-F.col("hour_at")).alias("earlier"), "messages")
    days = counted.groupBy(DT, *_names()).agg(
        F.sum("messages").alias("messages"), F.sum("bad").alias("bad"), F.max(worst).alias("worst")
    )
    bad, messages, is_missed = F.col("bad"), F.col("messages"), F.col("bad") > 0
    worst_burn = burn(F.col("worst.bad"), F.col("worst.messages"))
    return days.withColumns(
        {
            "good_percent": 100 * (messages - bad) / messages,
            "burn": burn(bad, messages),
            "worst_hour_at": F.when(is_missed, -F.col("worst.earlier")),
            "worst_hour_burn": F.when(is_missed, worst_burn),
        }
    )


def offenders(tables: Tables, settings: PipelineSettings) -> DataFrame:
    missed = _with_misses(tables["lifecycle"], settings).where("is_bad")
    by = Window.partitionBy(DT, "queue", "objective", "dimension")
    parts = [
        missed.select(
            DT,
            "queue",
            "objective",
            F.lit(dimension).alias("dimension"),
            F.col(dimension).alias("name"),
        )
        for dimension in DIMENSIONS
    ]
    counted = (
        reduce(DataFrame.unionByName, parts)
        .groupBy(DT, "queue", "objective", "dimension", "name")
        .agg(F.count(F.lit(1)).alias("bad"))
        # A share of all misses, including those without such a name.
        .withColumn("share", F.col("bad") / F.sum("bad").over(by))
        .where(F.col("name").isNotNull())
    )
    in_order = by.orderBy(F.desc("bad"), "name")
    ranked = counted.withColumn("rank", F.row_number().over(in_order))
    return ranked.where(F.col("rank") <= WORST)


def burn(bad: Column, messages: Column) -> Column:
    """The share of the budget that is used; the column `percent` is the target."""
    return bad * 100 / (messages * (100 - F.col("percent")))


def _with_misses(lifecycle: DataFrame, settings: PipelineSettings) -> DataFrame:
    """A row for each message and objective that applies to it, and whether it missed it."""
    parts = [
        _of_objective(
            lifecycle, objective, [t for t in settings.service_levels if t.objective is objective]
        )
        for objective in Objective
    ]
    return reduce(DataFrame.unionByName, parts)


def _of_objective(lifecycle: DataFrame, objective: Objective, targets: list[Target]) -> DataFrame:
    is_about, is_bad = _measures()[objective]
    measured = lifecycle.select(
        DT,
        "queue",
        *DIMENSIONS,
        "finished_at",
        "outcome",
        *(f"{name}_ms" for name in ("wait", "service", "total")),
        F.lit(objective.value).alias("objective"),
        first_match(targets, "limit_ms").cast("long").alias("limit_ms"),
        first_match(targets, "percent").cast("double").alias("percent"),
    )
    about = measured.where(F.col("percent").isNotNull() & is_about)
    return about.select(*_names(), *DIMENSIONS, "finished_at", DT, is_bad.alias("is_bad"))


def first_match(targets: list[Target], field: str) -> Column:
    """A field of the first target that matches the queue; null if none does."""
    found = F.lit(None)
    for target in reversed(targets):
        fits = F.col("queue").rlike(target.pattern)
        found = F.when(fits, F.lit(getattr(target, field))).otherwise(found)
    return found


def wait_limit_ms(settings: PipelineSettings) -> Column:
    """How long messages of the column `queue` may wait: the queue's target for the wait."""
    targets = [t for t in settings.service_levels if t.objective is Objective.WAIT]
    return F.coalesce(first_match(targets, "limit_ms"), F.lit(LATE_MS)).cast("long")


def _names() -> tuple[str, ...]:
    return tuple(field.name for field in _TARGET)


def _limit(measure: str) -> tuple[Column, Column]:
    value = F.col(f"{measure}_ms")
    return value.isNotNull(), value > F.col("limit_ms")


def _measures() -> dict[Objective, tuple[Column, Column]]:
    is_done = F.col("outcome") == State.DONE.value
    about_total, late = _limit("total")
    return {
        Objective.WAIT: _limit("wait"),
        Objective.SERVICE: _limit("service"),
        Objective.TOTAL: (about_total & is_done, late),
        # A cancelled message is not a failure: its sender wanted it gone.
        Objective.SUCCESS: (F.col("outcome") != State.CANCELLED.value, ~is_done),
    }


JOB = PipelineJob(
    name="slo",
    summary="service-level targets: how many messages met them, burn, worst offenders",
    inputs=("lifecycle",),
    outputs=(JobOutput(SLO, slo), JobOutput(OFFENDERS, offenders)),
    settings=("service_levels",),
)
