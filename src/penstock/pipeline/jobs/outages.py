"""Outages of routes: when most of their calls failed, and when their circuits were not closed.

A route *fails* while at least half of the calls of every minute fail (minutes without calls do not
end it), from its first failure to its last.

Everything here is SQL over sums of a minute, so its memory does not grow with the number of calls.
All frames have the columns dt and route; periods also have from_at and to_at.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from penstock.domain.limits import DAY, MINUTE
from penstock.pipeline.jobs.poison_facts import CLOSED
from penstock.pipeline.schemas import DT

OUTAGE_PERCENT = 50
PERIOD = (DT, "route", "from_at", "to_at")


def minute_sums(calls: DataFrame) -> DataFrame:
    """Of the calls of a route: pipeline/jobs/route_calls.py."""
    failed_at = F.when(F.col("is_failure"), F.col("at"))
    return calls.groupBy(DT, "route", F.expr(f"at div {MINUTE}").alias("minute")).agg(
        F.count(F.lit(1)).alias("calls"),
        F.count(failed_at).alias("failures"),
        F.min(failed_at).alias("first_failed_at"),
        F.max(failed_at).alias("last_failed_at"),
        F.count_distinct("message_no").alias("messages"),
    )


def failing_periods(minutes: DataFrame, *, least_ms: int) -> DataFrame:
    """Periods of at least this length in which a route failed."""
    return split_by_failure(minutes).where(is_outage(least_ms)).select(*PERIOD)


def split_by_failure(minutes: DataFrame, *same: str) -> DataFrame:
    """Periods with at most one time in which the route failed; without one, it has no instants.

    `same`: columns to keep, which have one value for a route and day.
    """
    is_failing = F.col("failures") * 100 >= F.col("calls") * OUTAGE_PERCENT
    in_order = Window.partitionBy(DT, "route").orderBy("minute")
    # A sound minute begins a period, and the failing ones after it belong to it.
    period = F.count_if(~is_failing).over(in_order)
    return (
        minutes.withColumn("period", period)
        .groupBy(DT, "route", *same, "period")
        .agg(
            F.min(F.when(is_failing, F.col("first_failed_at"))).alias("from_at"),
            F.max(F.when(is_failing, F.col("last_failed_at"))).alias("to_at"),
        )
    )


def is_outage(least_ms: int) -> Column:
    return F.col("to_at") - F.col("from_at") >= least_ms


def open_periods(changes: DataFrame) -> DataFrame:
    """When a circuit was not closed on a day and the day before it.

    A change has its `kind`, the instant `at`, its `fact_no`, and whether the circuit `was_closed`.
    """
    in_order = Window.partitionBy(DT, "route").orderBy("at", "fact_no")
    is_closing = F.col("kind") == CLOSED
    closed_before = F.count_if(is_closing).over(in_order.rowsBetween(Window.unboundedPreceding, -1))
    begins, ends = midnight() - DAY, midnight() + DAY
    # A circuit that was not closed before its first change has been open since the first day.
    is_open_before = (F.row_number().over(in_order) == 1) & ~F.col("was_closed")
    return (
        changes.withColumn("period", closed_before)
        .withColumn(
            "opened_at", F.when(is_open_before, begins).otherwise(F.when(~is_closing, F.col("at")))
        )
        .groupBy(DT, "route", "period")
        .agg(
            F.min("opened_at").alias("from_at"),
            F.coalesce(F.max(F.when(is_closing, F.col("at"))), ends).alias("to_at"),
        )
        .where("from_at IS NOT NULL")
        .select(*PERIOD)
    )


def merge(periods: DataFrame) -> DataFrame:
    """Periods of a route with less than a minute between them are one."""
    in_order = Window.partitionBy(DT, "route").orderBy("from_at", "to_at")
    earlier = in_order.rowsBetween(Window.unboundedPreceding, -1)
    gap_ms = F.col("from_at") - F.max("to_at").over(earlier)
    return (
        periods.withColumn("is_new", F.coalesce(gap_ms >= MINUTE, F.lit(False)))
        .withColumn("number", F.count_if("is_new").over(in_order))
        .groupBy(DT, "route", "number")
        .agg(F.min("from_at").alias("from_at"), F.max("to_at").alias("to_at"))
        .select(*PERIOD)
    )


def is_concerned(message: str, outage: str, *, until: str) -> Column:
    """Whether an outage concerns a message that waited, or lived, until then.

    It was sent before the outage had ended, or while the route recovered (as long again).
    """
    recovered_at = 2 * F.col(f"{outage}.to_at") - F.col(f"{outage}.from_at")
    return (
        (F.col(f"{message}.{DT}") == F.col(f"{outage}.{DT}"))
        & (F.col(f"{message}.route") == F.col(f"{outage}.route"))
        & (F.col(f"{message}.sent_at") <= recovered_at)
        & (F.col(f"{message}.{until}") >= F.col(f"{outage}.from_at"))
    )


def midnight() -> Column:
    """The instant at which the day of a row begins."""
    return F.unix_millis(F.to_timestamp(F.col(DT)))
