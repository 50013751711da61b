"""The calls of routes: attempts that ended, with the route of their message."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.domain.lake.layout import ATTEMPTS, HISTORY
from penstock.domain.message import history
from penstock.domain.message.lifecycle import EXHAUSTED, QUARANTINED, TIMED_OUT, State
from penstock.pipeline.checks import sound_rows
from penstock.pipeline.job import Tables
from penstock.pipeline.schemas import DT

_FAILED = sorted(outcome.value for outcome in history.FAILURES)
_FATAL = (EXHAUSTED, TIMED_OUT, QUARANTINED)  # set by an attempt; other reasons are set by hand


def route_calls(tables: Tables) -> DataFrame:
    """dt, route, at, message_no, is_failure: one row per attempt whose outcome counts."""
    ended = sound_rows(tables["history"], HISTORY).where("route IS NOT NULL")
    is_fatal = (F.col("outcome") == State.DEAD.value) & F.col("reason").isin(*_FATAL)
    last = ended.where((F.col("outcome") == State.DONE.value) | is_fatal).select(
        DT, "route", F.col("finished_at").alias("at"), "message_no", is_fatal.alias("is_failure")
    )
    others = sound_rows(tables["attempts"], ATTEMPTS).where(F.col("outcome").isin(*_FAILED))
    # An attempt has no route: take that of its message if it has ended, or else that of its queue.
    by_message = ended.groupBy("message_no").agg(F.first("route").alias("own_route"))
    by_queue = (
        ended.groupBy("queue")
        .agg(F.min("route").alias("queue_route"), F.max("route").alias("other"))
        .where("queue_route = other")
        .drop("other")
    )
    known = others.join(by_message, "message_no", "left").join(
        F.broadcast(by_queue), "queue", "left"
    )
    earlier = known.select(
        DT,
        F.coalesce("own_route", "queue_route").alias("route"),
        F.col("ended_at").alias("at"),
        "message_no",
        F.lit(True).alias("is_failure"),
    ).where("route IS NOT NULL")
    return last.unionByName(earlier)


def with_day_before(rows: DataFrame) -> DataFrame:
    """Each row also on the next day, so that every day comes with the day before it."""
    days = F.explode(F.array(DT, F.date_format(F.date_add(F.to_date(DT), 1), "yyyy-MM-dd")))
    return rows.withColumn("day", days).drop(DT).withColumnRenamed("day", DT)
