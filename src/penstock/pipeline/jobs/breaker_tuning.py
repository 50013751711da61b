"""Replays history under candidate settings of the circuit breaker, and recommends one.

Every candidate has a row per route and day, and one for all routes together (`*`), as the settings
apply to all routes.  A day is replayed after the day before it, which fills the outcome window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from penstock.domain.insights.breaker import ALL_ROUTES, RANKING, USUAL_THRESHOLD
from penstock.domain.lake.layout import BACKLOG
from penstock.domain.lake.pipeline_settings import PipelineSettings, settings_named
from penstock.domain.limits import MINUTE
from penstock.pipeline.checks import sound_rows
from penstock.pipeline.job import JobOutput, PipelineJob, Tables, only_wanted_days
from penstock.pipeline.jobs.outages import (
    is_outage,
    midnight,
    minute_sums,
    split_by_failure,
)
from penstock.pipeline.jobs.route_calls import route_calls, with_day_before
from penstock.pipeline.replays.breaker import RouteCall
from penstock.pipeline.replays.route import RouteReplay
from penstock.pipeline.schemas import DT, ComputedTable, boolean, double, integer, long, text

_CANDIDATE = (
    text("route", "whose circuit; *: all of them"),
    text("candidate", "name of the settings; now: those in force"),
    long("entries_max_age_ms", "setting: maximum age of a sample"),
    long("max_queue_sample_count", "setting: samples kept of each outcome"),
    integer("error_threshold_percentage", "setting: share of failures that opens the circuit"),
    long("min_queue_sample_count", "setting: samples needed to open the circuit"),
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
_REPLAYED_SCHEMA = StructType(
    [f for f in BREAKER_TUNING.schema if f.name not in {"rank", "is_recommended"}]
)
_OUTAGES = "array<struct<from_at: bigint, to_at: bigint>>"
_OF_CALLS = ("at", "message_no", "is_failure")
_OF_ROUTES = ("per_minute", "busiest_per_minute", "load", "outages")


def breaker_tuning(tables: Tables, settings: PipelineSettings) -> DataFrame:
    calls = route_calls(tables)
    minutes = minute_sums(calls)
    routes = _routes(minutes, sound_rows(tables["backlog"], BACKLOG), settings)
    # Each call counts on its own day and fills the window for the next one.
    rows = only_wanted_days(_with_headers(with_day_before(calls), routes), tables)
    # All candidates of a route are replayed together, so that its calls are shuffled once.  They
    # are sorted here and streamed through Python: a route may have more calls than fit into memory.
    in_order = rows.repartition(DT, "route").sortWithinPartitions(
        DT, "route", F.asc_nulls_first("at"), "message_no", "is_failure"
    )
    return _rank(_with_all(in_order.mapInArrow(_replay_routes(settings), _REPLAYED_SCHEMA)))


def _routes(minutes: DataFrame, backlog: DataFrame, settings: PipelineSettings) -> DataFrame:
    """A row per route and day: how busy it is, how busy the busiest one is, and its outages.

    Also for routes that had calls on the day before only, because their calls are replayed too.
    """
    # All in one pass over the minutes: each branch would read and join the calls once more.
    of_route = Window.partitionBy(DT, "route")
    is_own_day = F.col("minute") * MINUTE >= midnight()
    rate = F.percentile(F.when(is_own_day, F.col("messages")), 0.95).over(of_route)
    periods = split_by_failure(
        with_day_before(minutes).withColumn("per_minute", rate), "per_minute"
    )
    outage = F.when(is_outage(settings.breaker_outage_ms), F.struct("from_at", "to_at"))
    routes = periods.groupBy(DT, "route", "per_minute").agg(
        F.array_sort(F.collect_list(outage)).alias("outages")
    )
    busiest = F.max("per_minute").over(Window.partitionBy(DT))
    known = routes.withColumn("busiest_per_minute", busiest)
    return known.join(_loads(backlog), DT, "left").na.fill({"load": 0.0})


def _loads(backlog: DataFrame) -> DataFrame:
    """Active queues on average, by day."""
    active = F.count_if(F.expr("ready > 0 OR leased > 0"))
    minutes = F.count_distinct(F.expr(f"at div {MINUTE}"))
    return backlog.groupBy(DT).agg((active / minutes).alias("load"))


def _with_headers(calls: DataFrame, routes: DataFrame) -> DataFrame:
    """Calls, and a header for each route and day, which has no instant."""
    kinds = dict(zip(_OF_ROUTES, ("double", "double", "double", _OUTAGES), strict=True))
    bodies = calls.select(
        DT,
        "route",
        *_OF_CALLS,
        *(F.lit(None).cast(kind).alias(name) for name, kind in kinds.items()),
    )
    headers = routes.select(DT, "route", *_OF_ROUTES)
    return headers.unionByName(bodies, allowMissingColumns=True)


def _replay_routes(
    settings: PipelineSettings,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    schema = to_arrow_schema(_REPLAYED_SCHEMA)

    def of_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        route: RouteReplay | None = None
        for batch in batches:
            for header, calls in _parts(batch):
                if header is not None:
                    yield from _batches(route, schema)
                    route = RouteReplay(header, settings)
                if route is not None:
                    route.play(calls)
        yield from _batches(route, schema)

    return of_partition


def _parts(batch: pa.RecordBatch) -> Iterator[tuple[dict[str, Any] | None, list[RouteCall]]]:
    """Calls of one route at a time, with the header of the route if it is in this batch."""
    headers = set(pc.indices_nonzero(pc.is_null(batch.column("at"))).to_pylist())
    for begin, end in pairwise(sorted({0, *headers, batch.num_rows})):
        part = batch.slice(begin, end - begin)
        header = part.slice(0, 1).to_pylist()[0] if begin in headers else None
        calls = part.slice(0 if header is None else 1)
        columns = (calls.column(name).to_pylist() for name in _OF_CALLS)
        yield header, list(map(RouteCall, *columns))


def _batches(route: RouteReplay | None, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    rows = [] if route is None else route.rows()
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema)


def _with_all(found: DataFrame) -> DataFrame:
    """Also a row for all routes together; the shortest survival of any route counts."""
    # Every row twice, and added up once: otherwise each route would be replayed twice.
    twice = found.withColumn("route", F.explode(F.array("route", F.lit(ALL_ROUTES))))
    same = ("max_queue_sample_count", "min_queue_sample_count", "entries_max_age_ms")
    added = [n.name for n in _FOUND if n.name != "detection_max_ms"]
    return twice.groupBy(DT, "route", "candidate").agg(
        *(F.first(n).alias(n) for n in (*same, "error_threshold_percentage", "off_by", "load")),
        F.max("per_minute").alias("per_minute"),
        F.min("survival_ms").alias("survival_ms"),
        F.min_by("dies_with", "survival_ms").alias("dies_with"),
        *(F.sum(n).alias(n) for n in added),
        F.max("detection_max_ms").alias("detection_max_ms"),
    )


def _rank(found: DataFrame) -> DataFrame:
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
    only_own_day=("backlog",),
    settings=settings_named("breaker_"),
    version=2,
)
