"""Replays history under candidate settings of the circuit breaker, and recommends one.

Every candidate has a row per route and day, and one for all routes together (`*`), as the settings
apply to all routes.  A day is replayed after the day before it, which fills the outcome window.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from penstock.domain.circuit.settings import BreakerSettings, BreakerTask
from penstock.domain.insights.breaker import ALL_ROUTES, RANKING, SETTINGS, USUAL_THRESHOLD
from penstock.domain.lake.layout import BACKLOG, midnight_of
from penstock.domain.lake.pipeline_settings import PipelineSettings, settings_named
from penstock.domain.limits import DAY, MINUTE
from penstock.pipeline.checks import sound_rows
from penstock.pipeline.job import JobOutput, PipelineJob, Tables
from penstock.pipeline.jobs.route_calls import route_calls, with_day_before
from penstock.pipeline.replays.breaker import Interval, RouteCall, evaluate, outages, replay
from penstock.pipeline.replays.tuning import candidates, survival
from penstock.pipeline.schemas import DT, ComputedTable, boolean, double, integer, long, text

_CANDIDATE = (
    text("route", "whose circuit; *: all of them"),
    text("candidate", "name of the settings; now: those in force"),
    long("entries_max_age_ms", "entriesMaxAgeMS"),
    long("max_queue_sample_count", "maxQueueSampleCount"),
    integer("error_threshold_percentage", "errorThresholdPercentage"),
    long("min_queue_sample_count", "minQueueSampleCount"),
    integer("off_by", "steps between its age and the formula's"),
    double("per_minute", "messages tried in a busy minute (the 95th percentile)"),
    double("load", "active queues on average"),
    long("survival_ms", "how long the server survives with this route down and no open circuit"),
    long("dies_with", "active queues after the whole minutes of that time"),
)
_FOUND = (
    long("calls", "attempts that ended"),
    long("failures", "attempts that failed"),
    long("outages", "outages that began on this day"),
    long("missed", "outages in which the circuit never opened"),
    long("unsafe", "outages that the server would not have survived until the circuit opened"),
    long("opens", "openings"),
    long("false_opens", "openings outside of outages"),
    long("reopens", "failed probes"),
    long("open_ms", "how long the circuit was not closed"),
    long("false_open_ms", "the part of open_ms outside of outages"),
    long("detection_ms", "from an outage's first failure to the opening: sum of all outages"),
    long("detection_max_ms", "the same for the slowest; null: no outage was detected"),
    long("held", "calls that would not have been tried"),
    long("failed", "calls that would have been tried and failed"),
)

BREAKER_TUNING = ComputedTable(
    name="breaker_tuning",
    meaning="what each candidate for the breaker's settings would have done",
    fields=(
        *_CANDIDATE,
        *_FOUND,
        integer("rank", "1 is the best of its route and day"),
        boolean("is_recommended", "whether it is the best"),
    ),
)
_GRID = StructType(
    [f for f in BREAKER_TUNING.schema if f.name in {DT, *(c.name for c in _CANDIDATE)}]
)
_REPLAYED = StructType(
    [f for f in BREAKER_TUNING.schema if f.name not in {"rank", "is_recommended"}]
)


def breaker_tuning(tables: Tables, settings: PipelineSettings) -> DataFrame:
    calls = route_calls(tables)
    grid = _grid(calls, sound_rows(tables["backlog"], BACKLOG), settings)
    # Each call counts on its own day and fills the window for the next one.  All candidates of a
    # route are replayed together, so that its calls are shuffled once.
    replays = with_day_before(calls).groupBy(DT, "route").cogroup(grid.groupBy(DT, "route"))
    found = replays.applyInArrow(_replaying(settings), _REPLAYED)
    return _ranked(found.unionByName(_of_all(found)))


def _grid(calls: DataFrame, backlog: DataFrame, settings: PipelineSettings) -> DataFrame:
    """The candidates for every route and day, chosen for the busiest route of the day."""
    minutes = calls.groupBy(DT, "route", F.expr(f"at div {MINUTE}").alias("minute"))
    tried = minutes.agg(F.count_distinct("message_no").alias("tried"))
    rates = tried.groupBy(DT, "route").agg(F.percentile("tried", 0.95).alias("per_minute"))
    active = (
        backlog.where("ready > 0 OR leased > 0").groupBy(DT).agg(F.count(F.lit(1)).alias("active"))
    )
    sampled = backlog.groupBy(DT).agg(F.count_distinct(F.expr(f"at div {MINUTE}")).alias("minutes"))
    loads = sampled.join(active, DT, "left").select(
        DT, (F.coalesce("active", F.lit(0)) / F.col("minutes")).alias("load")
    )
    known = rates.join(loads, DT, "left").na.fill({"load": 0.0})
    return known.groupBy(DT).applyInArrow(_candidates(settings), _GRID)


def _candidates(settings: PipelineSettings) -> Any:
    schema = to_arrow_schema(_GRID)

    def of_day(table: pa.Table) -> pa.Table:
        routes = table.to_pylist()
        busiest = max(routes, key=lambda r: (r["per_minute"], r["route"]))
        rows = [
            _candidate_row(route, one, settings)
            for one in candidates(
                current_settings(settings),
                _survival(busiest, settings),
                per_minute=busiest["per_minute"],
            )
            for route in routes
        ]
        return pa.Table.from_pylist(rows, schema)

    return of_day


def _candidate_row(route: dict[str, Any], one: Any, settings: PipelineSettings) -> dict[str, Any]:
    lives = _survival(route, settings)
    return {
        **{f: getattr(one.settings, f) for f in SETTINGS},
        "route": route["route"],
        "candidate": one.name,
        "off_by": one.off_by,
        "per_minute": route["per_minute"],
        "load": _load(route, settings),
        "survival_ms": lives.ms if lives else None,
        "dies_with": lives.active if lives else None,
        DT: route[DT],
    }


def current_settings(settings: PipelineSettings) -> BreakerSettings:
    return BreakerSettings(
        entries_max_age_ms=settings.breaker_max_age_ms,
        max_queue_sample_count=settings.breaker_max_samples,
        min_queue_sample_count=settings.breaker_min_samples,
        error_threshold_percentage=settings.breaker_threshold_percent,
        open_to_half_open=BreakerTask(interval_ms=settings.breaker_half_open_ms),
    )


def _load(route: dict[str, Any], settings: PipelineSettings) -> float:
    configured = settings.breaker_load
    return float(route["load"] if configured is None else configured)


def _survival(route: dict[str, Any], settings: PipelineSettings) -> Any:
    return survival(
        capacity=settings.breaker_capacity,
        load=_load(route, settings),
        per_minute=route["per_minute"],
    )


def _replaying(settings: PipelineSettings) -> Any:
    schema = to_arrow_schema(_REPLAYED)

    def of_route(table: pa.Table, grid: pa.Table) -> pa.Table:
        if not grid.num_rows:  # a day that was loaded only for the next one, or has no calls
            return schema.empty_table()
        table = table.sort_by([("at", "ascending"), ("message_no", "ascending")])
        columns = (table.column(n).to_pylist() for n in ("at", "message_no", "is_failure"))
        calls = list(map(RouteCall, *columns))
        rows = [one | _played(calls, one, settings) for one in grid.to_pylist()]
        return pa.Table.from_pylist(rows, schema)

    return of_route


def _played(
    calls: list[RouteCall], candidate: dict[str, Any], settings: PipelineSettings
) -> dict[str, Any]:
    from_at = midnight_of(candidate[DT])
    day = Interval(from_at, from_at + DAY)
    # The same result whichever neighbouring days were loaded.
    calls = [call for call in calls if from_at - DAY <= call.at < day.to_at]
    tried = BreakerSettings(
        circuit_check_enabled=True,
        statistics_update_enabled=True,
        open_to_half_open=BreakerTask(True, settings.breaker_half_open_ms),
        **{name: candidate[name] for name in SETTINGS},
    )
    replayed = replay(calls, tried, day)
    real = outages(calls, least_ms=settings.breaker_outage_ms)
    verdict = evaluate(replayed, real, day, survival_ms=candidate["survival_ms"])
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


def _of_all(found: DataFrame) -> DataFrame:
    """A row for all routes together; the shortest survival of any route counts."""
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
    """The server survives; no outage is missed; no false openings; then gateleen's guidelines."""
    return [
        *(F.col(name) for name in (*RANKING, "off_by")),
        F.abs(F.col("error_threshold_percentage") - USUAL_THRESHOLD),
        F.col("error_threshold_percentage"),
        F.col("entries_max_age_ms"),
        F.col("candidate"),
    ]


JOB = PipelineJob(
    name="breaker_tuning",
    summary="replays history through circuits under candidate settings and recommends some",
    inputs=("history", "attempts", "backlog"),
    after=("quality",),
    outputs=(JobOutput(BREAKER_TUNING, breaker_tuning),),
    lookback_days=1,
    settings=settings_named("breaker_"),
    version=2,
)
