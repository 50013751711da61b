"""Replays a day's arrivals under candidate profiles of the autoscaler, and recommends one.

Every candidate has a row per queue and day.  Messages that were sent before the day arrive when it
begins.  The work of a message is that of all its attempts; if its service time is unknown, the
median of its queue is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from penstock.domain.insights.replays import NOW
from penstock.domain.lake.layout import midnight_of
from penstock.domain.lake.pipeline_settings import PipelineSettings, settings_named
from penstock.domain.limits import DAY
from penstock.domain.scaling.fleet import External, Fleet
from penstock.domain.scaling.recommendation import Profile
from penstock.pipeline.job import JobOutput, PipelineJob, Tables
from penstock.pipeline.replays.fleet import QueueArrivals, backtest
from penstock.pipeline.schemas import DT, ComputedTable, boolean, double, integer, long, text

_PROFILE = (
    text("candidate", "name of the profile; now: the one in force"),
    integer("samples_needed", "readings between two decisions"),
    long("backlog_goal_s", "seconds in which a backlog is to be cleared"),
    integer("most_up", "the most workers added at once"),
)

SCALING_BACKTEST = ComputedTable(
    name="scaling_backtest",
    meaning="what each candidate for the autoscaler's profile would have done",
    fields=(
        text("queue", "the queue of the workers"),
        *_PROFILE,
        long("messages", "messages that arrived, or were waiting when the day began"),
        long("unfinished", "messages not claimed a day after the end"),
        long("age_p50_ms", "median time from arrival to claim"),
        long("age_p99_ms", "99th percentile of that time"),
        long("age_max_ms", "the longest of these times"),
        long("clear_max_ms", "the longest time with a backlog"),
        long("backlog_max", "the largest backlog"),
        integer("workers_max", "the most workers"),
        double("worker_hours", "working hours of all workers together"),
        integer("changes", "decisions that changed the number of workers"),
        integer("flaps", "changes that reversed one of the last ten minutes"),
        long("age_goal_ms", "the goal for age_p99_ms (pipeline.backtest_age_goal_ms)", since=2),
        boolean("is_on_frontier", "no other is both cheaper and faster"),
        boolean("is_recommended", "the cheapest that is fast enough, or else the fastest"),
    ),
)
_MOST_MS = 2**63 - 1  # of work; for absurd rows
_VERDICT_COLUMNS = ("age_goal_ms", "is_on_frontier", "is_recommended")
_CANDIDATES = StructType(
    [f for f in SCALING_BACKTEST.schema if f.name in {field.name for field in _PROFILE}]
)
_REPLAYED_SCHEMA = StructType(
    [f for f in SCALING_BACKTEST.schema if f.name not in _VERDICT_COLUMNS]
)


def scaling_backtest(tables: Tables, settings: PipelineSettings) -> DataFrame:
    # All candidates of a queue together, so that its arrivals are shuffled once.
    replays = _arrivals(tables["lifecycle"]).groupBy(DT, "queue")
    return _with_verdict(replays.applyInArrow(_replay_queue(settings), _REPLAYED_SCHEMA), settings)


def _arrivals(lifecycle: DataFrame) -> DataFrame:
    """Messages that were claimed at least once; others were no work."""
    worked = lifecycle.where("attempts > 0")
    usual = worked.groupBy(DT, "queue").agg(
        F.percentile_approx("service_ms", 0.5).alias("usual_ms")
    )
    begins = F.unix_millis(F.to_timestamp(F.col(DT)))
    once = F.coalesce("service_ms", "usual_ms", F.lit(0))
    return worked.join(usual, [DT, "queue"]).select(
        DT,
        "queue",
        F.greatest("sent_at", begins).alias("at"),
        F.coalesce(F.try_multiply(once, "attempts"), F.lit(_MOST_MS)).alias("work_ms"),
    )


def profiles(settings: PipelineSettings) -> Iterator[tuple[str, Profile]]:
    now = Profile(
        samples_needed=settings.backtest_profile_samples,
        backlog_goal_s=settings.backtest_profile_goal_s,
        most_up=settings.backtest_profile_most_up,
    )
    yield NOW, now
    for samples, goal_s, most_up in product(
        settings.backtest_samples, settings.backtest_goals_s, settings.backtest_most_up
    ):
        profile = Profile(samples_needed=samples, backlog_goal_s=goal_s, most_up=most_up)
        if profile != now:
            yield f"{goal_s}s/{samples}/+{most_up}", profile


def _replay_queue(settings: PipelineSettings) -> Any:
    schema = to_arrow_schema(_REPLAYED_SCHEMA)
    candidates = list(profiles(settings))

    def of_queue(table: pa.Table) -> pa.Table:
        queue, dt = (table.column(name)[0].as_py() for name in ("queue", DT))
        from_at = midnight_of(dt)
        arrivals = QueueArrivals.of(table)
        rows = []
        for name, profile in candidates:
            found = backtest(
                arrivals,
                _fleet(queue, settings),
                profile,
                from_at=from_at,
                to_at=from_at + DAY,
                slots=settings.backtest_slots,
                start_ms=settings.backtest_start_ms,
            )
            values = {field: getattr(profile, field) for field in _CANDIDATES.names[1:]}
            row = {"queue": queue, DT: dt, "candidate": name} | values
            rows.append(row | msgspec.to_builtins(found))
        return pa.Table.from_pylist(rows, schema)

    return of_queue


def _fleet(queue: str, settings: PipelineSettings) -> Fleet:
    return Fleet(
        queue=queue,
        min=settings.backtest_min,
        max=settings.backtest_max,
        interval_ms=settings.backtest_interval_ms,
        replicas=External(),
    )


def _with_verdict(found: DataFrame, settings: PipelineSettings) -> DataFrame:
    of_queue = Window.partitionBy(DT, "queue")
    # An ordered window includes all rows that are equal to the current one.
    as_cheap, as_fast = of_queue.orderBy("worker_hours"), of_queue.orderBy("age_p99_ms")
    is_ahead = (F.col("age_p99_ms") == F.min("age_p99_ms").over(as_cheap)) & (
        F.col("worker_hours") == F.min("worker_hours").over(as_fast)
    )
    is_enough = (F.col("age_p99_ms") <= settings.backtest_age_goal_ms) & (F.col("unfinished") == 0)
    better = of_queue.orderBy(
        F.desc("is_enough"),
        F.when(F.col("is_enough"), F.col("worker_hours")).otherwise(F.col("age_p99_ms")),
        "age_p99_ms",
        "flaps",
        F.col("candidate") != NOW,  # prefer no change
        "candidate",
    )
    compared = found.withColumns(
        {"is_enough": is_enough, "age_goal_ms": F.lit(settings.backtest_age_goal_ms)}
    )
    return compared.withColumn("is_on_frontier", is_ahead).withColumn(
        "is_recommended", F.row_number().over(better) == 1
    )


JOB = PipelineJob(
    name="scaling_backtest",
    summary="replays arrivals through the autoscaler under candidate profiles",
    inputs=("lifecycle",),
    outputs=(JobOutput(SCALING_BACKTEST, scaling_backtest),),
    settings=settings_named("backtest_"),
    version=2,
)
