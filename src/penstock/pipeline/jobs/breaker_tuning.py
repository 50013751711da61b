"""What other settings of the circuit breaker would have done: history, replayed under each.

Of every route and day each candidate is a row, and so it is of all routes together (`*`), for which
the settings really are.  A day is replayed with the day before it, by which the samples are there.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from penstock.domain.circuit.settings import BreakerSettings, BreakerTask
from penstock.domain.lake.layout import ATTEMPTS, HISTORY
from penstock.domain.limits import DAY, MINUTE
from penstock.domain.message import history
from penstock.domain.message.lifecycle import EXHAUSTED, QUARANTINED, TIMED_OUT, State
from penstock.pipeline.checks import sound
from penstock.pipeline.job import Job, Output, Tables
from penstock.pipeline.replays.breaker import Call, Stretch, judged, outages, replay
from penstock.pipeline.replays.tuning import USUAL_THRESHOLD, candidates, survival
from penstock.pipeline.schemas import DT, Derived, boolean, double, integer, long, text
from penstock.pipeline.settings import JobSettings

ALL_ROUTES = "*"
_FAILED = sorted(outcome.value for outcome in history.FAILURES)
_FATAL = (EXHAUSTED, TIMED_OUT, QUARANTINED)  # reasons that an attempt gave; others people gave

_CANDIDATE = (
    text("route", "whose circuit; *: all of them"),
    text("candidate", "name of the settings; now: those in force"),
    long("entries_max_age_ms", "entriesMaxAgeMS"),
    long("max_queue_sample_count", "maxQueueSampleCount"),
    integer("error_threshold_percentage", "errorThresholdPercentage"),
    long("min_queue_sample_count", "minQueueSampleCount"),
    integer("off_by", "usual ages between its age and the formula's"),
    double("per_minute", "messages that are tried in a busy minute (the 95th percentile)"),
    double("load", "active queues on average"),
    long("survival_ms", "how long the server lives with this route down and no circuit opening"),
    long("dies_with", "active queues after the whole minutes of that time"),
)
_FOUND = (
    long("calls", "attempts that came to an end"),
    long("failures", "attempts that failed"),
    long("outages", "times in which most failed, that began on this day"),
    long("missed", "outages in which the circuit never opened"),
    long("unsafe", "outages that the server would not have survived until the circuit opened"),
    long("opens", "openings"),
    long("false_opens", "openings outside of outages"),
    long("reopens", "times it was tried and opened again"),
    long("open_ms", "how long it was not closed"),
    long("false_open_ms", "how long of that there was no outage"),
    long("detection_ms", "from the first failure of an outage to the opening: all outages added"),
    long("detection_max_ms", "the same, of the slowest; null: no outage was noticed"),
    long("held", "calls that would not have been tried"),
    long("failed", "calls that would have been tried and failed"),
)

BREAKER_TUNING = Derived(
    name="breaker_tuning",
    meaning="what each candidate of the breaker's settings would have done",
    fields=(
        *_CANDIDATE,
        *_FOUND,
        integer("rank", "1 is the best of its route and day"),
        boolean("is_recommended", "whether it is that one"),
    ),
)
_GRID = StructType(
    [f for f in BREAKER_TUNING.schema if f.name in {DT, *(c.name for c in _CANDIDATE)}]
)
_REPLAYED = StructType(
    [f for f in BREAKER_TUNING.schema if f.name not in {"rank", "is_recommended"}]
)


def breaker_tuning(tables: Tables, settings: JobSettings) -> DataFrame:
    calls = _calls(tables)
    grid = _grid(calls, tables["backlog"], settings)
    days = F.explode(F.array(DT, F.date_format(F.date_add(F.to_date(DT), 1), "yyyy-MM-dd")))
    # Each call counts on its day and prepares the next one.
    played = calls.withColumn("day", days).drop(DT).withColumnRenamed("day", DT)
    replays = played.join(F.broadcast(grid), [DT, "route"]).groupBy(DT, "route", "candidate")
    found = replays.applyInArrow(_replaying(settings), _REPLAYED)
    return _ranked(found.unionByName(_of_all(found)))


def _calls(tables: Tables) -> DataFrame:
    """dt, route, at, message_no, is_failure: one row per attempt whose outcome counts."""
    ended = sound(tables["history"], HISTORY).where("route IS NOT NULL")
    is_fatal = (F.col("outcome") == State.DEAD.value) & F.col("reason").isin(*_FATAL)
    last = ended.where((F.col("outcome") == State.DONE.value) | is_fatal).select(
        DT, "route", F.col("finished_at").alias("at"), "message_no", is_fatal.alias("is_failure")
    )
    others = sound(tables["attempts"], ATTEMPTS).where(F.col("outcome").isin(*_FAILED))
    # An attempt does not say its route: its message does once it has ended, or else its queue does.
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


def _grid(calls: DataFrame, backlog: DataFrame, settings: JobSettings) -> DataFrame:
    """Every candidate of every route and day, made for the busiest route of the day."""
    minutes = calls.groupBy(DT, "route", F.expr(f"at div {MINUTE}").alias("minute"))
    tried = minutes.agg(F.count_distinct("message_no").alias("tried"))
    rates = tried.groupBy(DT, "route").agg(F.percentile("tried", 0.95).alias("per_minute"))
    active = backlog.where("ready + leased > 0").groupBy(DT).agg(F.count(F.lit(1)).alias("active"))
    sampled = backlog.groupBy(DT).agg(F.count_distinct(F.expr(f"at div {MINUTE}")).alias("minutes"))
    loads = sampled.join(active, DT, "left").select(
        DT, (F.coalesce("active", F.lit(0)) / F.col("minutes")).alias("load")
    )
    known = rates.join(loads, DT, "left").na.fill({"load": 0.0})
    return known.groupBy(DT).applyInArrow(_candidates(settings), _GRID)


def _candidates(settings: JobSettings) -> Any:
    schema = to_arrow_schema(_GRID)

    def of_day(table: pa.Table) -> pa.Table:
        routes = table.to_pylist()
        busiest = max(routes, key=lambda r: (r["per_minute"], r["route"]))
        rows = [
            _candidate_row(route, one, settings)
            for one in candidates(
                in_force(settings),
                _survival(busiest, settings),
                per_minute=busiest["per_minute"],
            )
            for route in routes
        ]
        return pa.Table.from_pylist(rows, schema)

    return of_day


def _candidate_row(route: dict[str, Any], one: Any, settings: JobSettings) -> dict[str, Any]:
    lives = _survival(route, settings)
    return {
        **{f: getattr(one.settings, f) for f in _SET},
        "route": route["route"],
        "candidate": one.name,
        "off_by": one.off_by,
        "per_minute": route["per_minute"],
        "load": _load(route, settings),
        "survival_ms": lives.ms if lives else None,
        "dies_with": lives.active if lives else None,
        DT: route[DT],
    }


_SET = (
    "entries_max_age_ms",
    "max_queue_sample_count",
    "error_threshold_percentage",
    "min_queue_sample_count",
)


def in_force(settings: JobSettings) -> BreakerSettings:
    return BreakerSettings(
        entries_max_age_ms=settings.breaker_max_age_ms,
        max_queue_sample_count=settings.breaker_max_samples,
        min_queue_sample_count=settings.breaker_min_samples,
        error_threshold_percentage=settings.breaker_threshold_percent,
        open_to_half_open=BreakerTask(interval_ms=settings.breaker_half_open_ms),
    )


def _load(route: dict[str, Any], settings: JobSettings) -> float:
    said = settings.breaker_load
    return float(route["load"] if said is None else said)


def _survival(route: dict[str, Any], settings: JobSettings) -> Any:
    return survival(
        capacity=settings.breaker_capacity,
        load=_load(route, settings),
        per_minute=route["per_minute"],
    )


def _replaying(settings: JobSettings) -> Any:
    schema = to_arrow_schema(_REPLAYED)

    def of_route(table: pa.Table) -> pa.Table:
        table = table.sort_by([("at", "ascending"), ("message_no", "ascending")])
        first = table.slice(0, 1).to_pylist()[0]
        calls = [
            Call(*values)
            for values in zip(
                *(table.column(n).to_pylist() for n in ("at", "message_no", "is_failure")),
                strict=True,
            )
        ]
        row = {name: first[name] for name in _GRID.names} | _played(calls, first, settings)
        return pa.Table.from_pylist([row], schema)

    return of_route


def _played(calls: list[Call], said: dict[str, Any], settings: JobSettings) -> dict[str, Any]:
    from_at = _midnight(said[DT])
    day = Stretch(from_at, from_at + DAY)
    # The same day, whichever of its neighbours are there.
    calls = [call for call in calls if from_at - DAY <= call.at < day.to_at]
    tried = BreakerSettings(
        circuit_check_enabled=True,
        statistics_update_enabled=True,
        open_to_half_open=BreakerTask(True, settings.breaker_half_open_ms),
        **{name: said[name] for name in _SET},
    )
    replayed = replay(calls, tried, day)
    real = outages(calls, least_ms=settings.breaker_outage_ms)
    verdict = judged(replayed, real, day, survival_ms=said["survival_ms"])
    own = [call for call in calls if call.at >= from_at]
    return {
        "calls": len(own),
        "failures": sum(call.is_failure for call in own),
        **{n: getattr(verdict, n) for n in ("outages", "missed", "unsafe", "opens", "false_opens")},
        "reopens": replayed.reopened,
        "open_ms": verdict.open_ms,
        "false_open_ms": verdict.false_open_ms,
        "detection_ms": sum(verdict.delays_ms),
        "detection_max_ms": max(verdict.delays_ms, default=None),
        "held": replayed.held,
        "failed": replayed.failed,
    }


def _midnight(dt: str) -> int:
    from datetime import datetime

    from penstock.domain.datetimes import instant_of

    return instant_of(datetime.fromisoformat(f"{dt}T00:00+00:00"))


def _of_all(found: DataFrame) -> DataFrame:
    """The routes together: the server dies of the one it survives shortest."""
    same = ("max_queue_sample_count", "min_queue_sample_count", "entries_max_age_ms")
    shortest = F.min_by("dies_with", "survival_ms")
    added = [n.name for n in _FOUND if n.name != "detection_max_ms"]
    return found.groupBy(DT, "candidate").agg(
        F.lit(ALL_ROUTES).alias("route"),
        *(F.first(n).alias(n) for n in (*same, "error_threshold_percentage", "off_by", "load")),
        F.max("per_minute").alias("per_minute"),
        F.min("survival_ms").alias("survival_ms"),
        shortest.alias("dies_with"),
        *(F.sum(n).alias(n) for n in added),
        F.max("detection_max_ms").alias("detection_max_ms"),
    )


def _ranked(found: DataFrame) -> DataFrame:
    best = Window.partitionBy(DT, "route").orderBy(*_better())
    ranked = found.withColumn("rank", F.row_number().over(best))
    return ranked.withColumn("is_recommended", F.col("rank") == 1)


def _better() -> list[Column]:
    """The server lives; no outage goes unnoticed; nothing else opens; then as in the seed."""
    return [
        *(F.col(name) for name in ("unsafe", "missed", "false_opens", "detection_ms", "off_by")),
        F.abs(F.col("error_threshold_percentage") - USUAL_THRESHOLD),
        F.col("error_threshold_percentage"),
        F.col("entries_max_age_ms"),
        F.col("candidate"),
    ]


JOB = Job(
    name="breaker_tuning",
    summary="replays history through circuits under candidate settings and recommends some",
    inputs=("history", "attempts", "backlog"),
    after=("quality",),
    outputs=(Output(BREAKER_TUNING, breaker_tuning),),
    lookback_days=1,
    settings=(
        "breaker_capacity",
        "breaker_load",
        "breaker_max_age_ms",
        "breaker_max_samples",
        "breaker_min_samples",
        "breaker_threshold_percent",
        "breaker_half_open_ms",
        "breaker_outage_ms",
    ),
)
