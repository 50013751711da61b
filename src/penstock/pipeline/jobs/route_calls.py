"""The calls of routes: attempts that ended, with the route of their message."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.domain.lake.layout import ATTEMPTS, HISTORY
from penstock.domain.message import history
from penstock.domain.message.lifecycle import State
from penstock.pipeline.checks import sound_rows
from penstock.pipeline.job import Tables
from penstock.pipeline.schemas import DT

_FAILED = sorted(outcome.value for outcome in history.FAILURES)


def route_calls(tables: Tables) -> DataFrame:
    """dt, route, at, message_no, is_failure: one row per attempt whose outcome counts.

    Every failed attempt is in the table of attempts, also the one that its message died of.
    """
    ended = sound_rows(tables["history"], HISTORY).where("route IS NOT NULL")
    succeeded = ended.where(F.col("outcome") == State.DONE.value).select(
        DT,
        "route",
        F.col("finished_at").alias("at"),
        "message_no",
        F.lit(False).alias("is_failure"),
    )
    failed = sound_rows(tables["attempts"], ATTEMPTS).where(F.col("outcome").isin(*_FAILED))
    # An attempt has no route: take that of its message if it has ended, or else that of its queue.
    # Few messages fail: the others need not be grouped.
    few = ended.join(failed.select("message_no").distinct(), "message_no", "left_semi")
    by_message = few.groupBy("message_no").agg(F.first("route").alias("own_route"))
    # Without repeated routes first: Spark would sort all rows to find the least of texts.
    by_queue = (
        ended.select("queue", "route")
        .distinct()
        .groupBy("queue")
        .agg(F.min("route").alias("queue_route"), F.count(F.lit(1)).alias("routes"))
        .where("routes = 1")
        .drop("routes")
    )
    known = failed.join(by_message, "message_no", "left").join(by_queue, "queue", "left")
    routed = known.select(
        DT,
        F.coalesce("own_route", "queue_route").alias("route"),
        F.col("ended_at").alias("at"),
        "message_no",
        F.lit(True).alias("is_failure"),
    ).where("route IS NOT NULL")
    return succeeded.unionByName(routed)


def with_day_before(rows: DataFrame) -> DataFrame:
    """Each row also on the next day, so that every day comes with the day before it."""
    days = F.explode(F.array(DT, F.date_format(F.date_add(F.to_date(DT), 1), "yyyy-MM-dd")))
    return rows.withColumn("day", days).drop(DT).withColumnRenamed("day", DT)
