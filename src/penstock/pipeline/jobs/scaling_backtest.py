"""What other profiles of the autoscaler would have done: a day's arrivals, worked on once more.

Of every queue and day each candidate is a row.  Messages that came before the day are there when it
begins.  One that was tried several times is as much work as all its attempts; where its time is not
known it is the usual one of its queue.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import product
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from penstock.domain.datetimes import instant_of
from penstock.domain.limits import DAY
from penstock.domain.scaling.fleet import External, Fleet
from penstock.domain.scaling.recommendation import Profile
from penstock.pipeline.frames import frame_of
from penstock.pipeline.job import Job, Output, Tables
from penstock.pipeline.replays.fleet import Arrival, backtest
from penstock.pipeline.schemas import DT, Derived, boolean, double, integer, long, text
from penstock.pipeline.settings import JobSettings

NOW = "now"  # the profile that is in force

_PROFILE = (
    text("candidate", "name of the profile; now: the one in force"),
    integer("samples_needed", "looks between two decisions"),
    long("backlog_goal_s", "in so many seconds a backlog is to be cleared"),
    integer("most_up", "workers that are added at once at most"),
)

SCALING_BACKTEST = Derived(
    name="scaling_backtest",
    meaning="what each candidate of the autoscaler's profiles would have done",
    fields=(
        text("queue", "whose workers"),
        *_PROFILE,
        long("messages", "that arrived, or were there when the day began"),
        long("unfinished", "not claimed a day after the end"),
        long("age_p50_ms", "half were claimed no later after their arrival"),
        long("age_p99_ms", "the same for 99 of 100"),
        long("age_max_ms", "the same for all"),
        long("clear_max_ms", "the longest time in which there was a backlog"),
        long("backlog_max", "the most that waited"),
        integer("workers_max", "the most workers"),
        double("worker_hours", "what all workers together cost"),
        integer("changes", "decisions that changed the number of workers"),
        integer("flaps", "changes that took back one of less than ten minutes before"),
        boolean("is_on_frontier", "no other is both cheaper and faster"),
        boolean("is_recommended", "the cheapest that is fast enough, or else the fastest"),
    ),
)
_CANDIDATES = StructType(
    [f for f in SCALING_BACKTEST.schema if f.name in {field.name for field in _PROFILE}]
)
_PLAYED = StructType(
    [f for f in SCALING_BACKTEST.schema if f.name not in {"is_on_frontier", "is_recommended"}]
)


def scaling_backtest(tables: Tables, settings: JobSettings) -> DataFrame:
    arrivals = _arrivals(tables["lifecycle"])
    grid = frame_of(arrivals.sparkSession, _grid(settings), _CANDIDATES)
    replays = arrivals.crossJoin(F.broadcast(grid)).groupBy(DT, "queue", "candidate")
    return _compared(replays.applyInArrow(_replaying(settings), _PLAYED), settings)


def _arrivals(lifecycle: DataFrame) -> DataFrame:
    """What nobody ever claimed was no work."""
    worked = lifecycle.where("attempts > 0")
    usual = worked.groupBy(DT, "queue").agg(
        F.percentile_approx("service_ms", 0.5).alias("usual_ms")
    )
    begins = F.unix_millis(F.to_timestamp(F.col(DT)))
    once = F.coalesce("service_ms", "usual_ms", F.lit(0))
    return worked.join(F.broadcast(usual), [DT, "queue"]).select(
        DT,
        "queue",
        F.greatest("sent_at", begins).alias("at"),
        (once * F.col("attempts")).alias("work_ms"),
    )


def profiles(settings: JobSettings) -> Iterator[tuple[str, Profile]]:
    yield NOW, Profile()
    for samples, goal_s, most_up in product(
        settings.backtest_samples, settings.backtest_goals_s, settings.backtest_most_up
    ):
        profile = Profile(samples_needed=samples, backlog_goal_s=goal_s, most_up=most_up)
        if profile != Profile():
            yield f"{goal_s}s/{samples}/+{most_up}", profile


def _grid(settings: JobSettings) -> list[dict[str, Any]]:
    return [
        {"candidate": name} | {f: getattr(profile, f) for f in _CANDIDATES.names[1:]}
        for name, profile in profiles(settings)
    ]


def _replaying(settings: JobSettings) -> Any:
    schema = to_arrow_schema(_PLAYED)

    def of_queue(table: pa.Table) -> pa.Table:
        first = table.slice(0, 1).to_pylist()[0]
        from_at = instant_of(datetime.fromisoformat(f"{first[DT]}T00:00+00:00"))
        found = backtest(
            list(map(Arrival, *(table.column(n).to_pylist() for n in ("at", "work_ms")))),
            _fleet(first["queue"], settings),
            Profile(**{name: first[name] for name in _CANDIDATES.names[1:]}),
            from_at=from_at,
            to_at=from_at + DAY,
            slots=settings.backtest_slots,
            start_ms=settings.backtest_start_ms,
        )
        row = {name: first[name] for name in ("queue", DT, *_CANDIDATES.names)}
        return pa.Table.from_pylist([row | msgspec.to_builtins(found)], schema)

    return of_queue


def _fleet(queue: str, settings: JobSettings) -> Fleet:
    return Fleet(
        queue=queue,
        min=settings.backtest_min,
        max=settings.backtest_max,
        interval_ms=settings.backtest_interval_ms,
        replicas=External(),
    )


def _compared(found: DataFrame, settings: JobSettings) -> DataFrame:
    of_queue = Window.partitionBy(DT, "queue")
    # A window in order of something ends with all that are equal in it.
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
        F.col("candidate") != NOW,  # without need nothing is changed
        "candidate",
    )
    compared = found.withColumn("is_enough", is_enough)
    return compared.withColumn("is_on_frontier", is_ahead).withColumn(
        "is_recommended", F.row_number().over(better) == 1
    )


JOB = Job(
    name="scaling_backtest",
    summary="replays arrivals through the autoscaler under candidate profiles",
    inputs=("lifecycle",),
    outputs=(Output(SCALING_BACKTEST, scaling_backtest),),
    settings=(
        "backtest_goals_s",
        "backtest_samples",
        "backtest_most_up",
        "backtest_min",
        "backtest_max",
        "backtest_slots",
        "backtest_start_ms",
        "backtest_interval_ms",
        "backtest_age_goal_ms",
    ),
)
