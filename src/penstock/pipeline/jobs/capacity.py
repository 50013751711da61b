"""Throughput, cost, how long the storage lasts, and trends.

    bandwidth = payload × requests                  a message is a request in, an attempt one out
    cost/day  = payload × requests a day × cost per volume

Peaks are shown beside averages, because a system must withstand its peak.  Storage: for how many
days it lasts while no worker consumes.  Trends: whether these figures are getting worse.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.window import WindowSpec

from penstock.domain.lake.layout import BACKLOG
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.pipeline.checks import sound_rows
from penstock.pipeline.job import (
    JobOutput,
    PipelineJob,
    Tables,
    only_earlier_days,
    only_wanted_days,
)
from penstock.pipeline.schemas import DT, ComputedTable, double, long, text

ALL = "*"  # the row for all queues together
TREND_DAYS = 28
_DAY_S = 86_400
_GIB = 1024**3

CAPACITY = ComputedTable(
    name="capacity",
    meaning="load, cost and storage of a day, by queue and in total",
    fields=(
        text("queue", "name of the queue; * for all together"),
        long("messages", "messages that ended"),
        long("arrived", "messages that were sent, by the broker's counters; null: unknown"),
        double("payload", "average bytes of a body"),
        long("moved", "bytes in and out"),
        double("bandwidth", "bytes per second, on average"),
        double("bandwidth_peak", "bytes per second, in the busiest minute"),
        double("per_second", "messages per second, on average"),
        double("per_second_peak", "messages per second, in the busiest minute"),
        double("peak_to_average", "the busiest minute divided by the average"),
        long("peak_at", "the busiest minute"),
        double("cost", "cost of the bytes moved that day"),
        long("backlog_peak", "the largest number of ready messages"),
        long("backlog_end", "live messages at the last sample of the day"),
        long("stored_peak", "bytes of the largest backlog"),
        long("stored_end", "bytes of the live messages at the last sample of the day", since=2),
        long("storage_bytes", "bytes available (pipeline.storage_bytes); null: not set", since=2),
        double("days_offline", "days until the storage is full if no worker consumes"),
        double("days_offline_at_peak", "the same if every minute were the busiest"),
        double("growth_per_week", "trend of the messages a day: 0.1 is ten percent more a week"),
        double("backlog_growth", "trend of the backlog: messages a day"),
        double("days_until_full", "days until the storage is full at that growth; null: never"),
    ),
)


def capacity(tables: Tables, settings: PipelineSettings) -> DataFrame:
    queues = tables["rollups"].where("dimension = 'queue'")
    ended = _days(only_wanted_days(queues, tables)).unionByName(
        _messages(only_earlier_days(queues, tables)), allowMissingColumns=True
    )
    samples = _samples(sound_rows(tables["backlog"], BACKLOG), ended)
    days = ended.join(samples, on=[DT, "queue"], how="left")
    average = F.avg("messages").over(_weeks())
    with_trend = days.withColumn("day", F.unix_date(F.to_date(DT))).withColumns(
        {
            "growth_per_week": F.try_divide(_slope("messages") * 7, average),
            "backlog_growth": _slope("backlog_end"),
        }
    )
    room = F.lit(settings.storage_bytes).cast("double")
    growth = F.col("backlog_growth") * F.col("payload")
    arriving = F.coalesce("arrived", "messages") * F.col("payload")
    at_peak = F.col("per_second_peak") * _DAY_S
    left = room - F.col("backlog_end") * F.col("payload")
    return with_trend.withColumns(
        {
            "bandwidth": F.col("moved") / _DAY_S,
            "per_second": F.col("messages") / _DAY_S,
            "peak_to_average": F.try_divide(at_peak, "messages"),
            "cost": F.col("moved") / _GIB * settings.price_per_gib,
            "stored_peak": F.col("backlog_peak") * F.col("payload"),
            "stored_end": F.col("backlog_end") * F.col("payload"),
            "storage_bytes": room,
            "days_offline": _positive(room / _more_than_0(arriving)),
            "days_offline_at_peak": _positive(room / _more_than_0(at_peak * F.col("payload"))),
            "days_until_full": _positive(left / _more_than_0(growth)),
        }
    )


def _messages(queues: DataFrame) -> DataFrame:
    """What trends need of earlier days, from one row per queue instead of one for each minute."""
    days = queues.where("grain = 'day'").select(
        DT, F.col("name").alias("queue"), F.col("finished").alias("messages"), "backlog"
    )
    together = days.groupBy(DT).agg(
        F.lit(ALL).alias("queue"), *(F.sum(name).alias(name) for name in ("messages", "backlog"))
    )
    return days.unionByName(together).where("messages > 0 OR backlog > 0").drop("backlog")


def _days(queues: DataFrame) -> DataFrame:
    """Per queue, and for all queues together."""
    minutes = queues.where("grain = 'minute'").select(
        DT,
        F.col("name").alias("queue"),
        "at",
        "finished",
        "bytes",
        "backlog",
        # Once in, and out with every attempt.
        (F.col("bytes") * (1 + F.try_divide("attempts", "finished"))).alias("moved"),
    )
    together = minutes.groupBy(DT, "at").agg(
        F.lit(ALL).alias("queue"),
        *(F.sum(name).alias(name) for name in ("finished", "bytes", "backlog", "moved")),
    )
    busiest = F.max_by("at", F.struct("finished", -F.col("at")))
    return (
        minutes.unionByName(together)
        .groupBy(DT, "queue")
        .agg(
            F.sum("finished").alias("messages"),
            F.try_divide(F.sum("bytes"), F.sum("finished")).alias("payload"),
            F.coalesce(F.sum("moved"), F.lit(0.0)).try_cast("long").alias("moved"),
            (F.max("moved") / 60).alias("bandwidth_peak"),
            (F.max("finished") / 60).alias("per_second_peak"),
            F.max("backlog").alias("backlog_peak"),
            busiest.alias("peak_at"),
        )
        .where("messages > 0 OR backlog_peak > 0")
    )


def _samples(backlog: DataFrame, days: DataFrame) -> DataFrame:
    """What arrived since the last sample of an earlier day, and what was live at the end.

    Before its first sample a queue counts as new if it had not ended more messages by then than on
    this whole day; of an older queue, only what arrived since that sample is known.
    """
    live = F.col("waiting") + F.col("ready") + F.col("leased")
    ended = F.col("done_total") + F.col("dead_total") + F.col("cancelled_total")
    by_queue = backlog.groupBy(DT, "queue", "queue_no").agg(
        F.max("sent_total").alias("sent"),
        F.min("sent_total").alias("first_sent"),
        F.min(ended).alias("first_ended"),
        F.max_by(live, F.col("at")).alias("backlog_end"),
    )
    is_new = F.col("first_ended") <= F.coalesce("messages", F.lit(0))
    first = F.when(is_new, 0).otherwise(F.col("first_sent"))
    before = F.lag("sent").over(Window.partitionBy("queue_no").orderBy(DT))
    by_queue = by_queue.join(days.select(DT, "queue", "messages"), [DT, "queue"], "left")
    by_queue = by_queue.withColumn("arrived", F.col("sent") - F.coalesce(before, first))
    names = by_queue.groupBy(DT, "queue").agg(*_sums("arrived", "backlog_end"))
    together = names.groupBy(DT).agg(F.lit(ALL).alias("queue"), *_sums("arrived", "backlog_end"))
    return names.unionByName(together)


def _sums(*names: str) -> list[Column]:
    return [F.sum(name).alias(name) for name in names]


def _slope(of: str) -> Column:
    """Change per day over the last weeks; null with only one day."""
    return F.regr_slope(F.col(of).cast("double"), F.col("day").cast("double")).over(_weeks())


def _weeks() -> WindowSpec:
    return Window.partitionBy("queue").orderBy("day").rangeBetween(1 - TREND_DAYS, 0)


def _more_than_0(column: Column) -> Column:
    return F.when(column > 0, column)


def _positive(column: Column) -> Column:
    return F.when(column < 0, F.lit(0.0)).otherwise(column)


JOB = PipelineJob(
    name="capacity",
    summary="bandwidth, cost, peak and average, days until the storage is full, growth",
    inputs=("rollups", "backlog"),
    outputs=(JobOutput(CAPACITY, capacity),),
    lookback_days=TREND_DAYS - 1,
    settings=("price_per_gib", "storage_bytes"),
    version=2,
)
