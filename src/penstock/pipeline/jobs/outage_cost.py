"""What outages cost: the messages of a route that were late or died because of one.

An outage is a period in which at least half of the route's calls failed (pipeline/replays/breaker)
or its circuit was not closed; overlapping periods are one.  It concerns the messages of the route
that were sent before it had ended, or while the route recovered (as long again as it had lasted),
and that ended after it had begun.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from penstock.domain.circuit.circuit import CircuitState
from penstock.domain.lake.layout import FACTS, HISTORY, midnight_of
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.domain.lake.slo_targets import Objective
from penstock.domain.limits import DAY, MINUTE
from penstock.domain.message.lifecycle import State
from penstock.pipeline.checks import sound_rows
from penstock.pipeline.job import JobOutput, PipelineJob, Tables
from penstock.pipeline.jobs.poison_facts import CHANGES, CLOSED
from penstock.pipeline.jobs.route_calls import route_calls, with_day_before
from penstock.pipeline.jobs.slo import first_match
from penstock.pipeline.replays.breaker import Interval, RouteCall, outages
from penstock.pipeline.schemas import DT, ComputedTable, long, text

LATE_MS = MINUTE  # for queues without a target for the wait

OUTAGE_COST = ComputedTable(
    name="outage_cost",
    meaning="messages that an outage made late, by queue and tenant",
    fields=(
        text("route", "the route that was down"),
        long("from_at", "when the outage began"),
        long("to_at", "when it ended"),
        text("queue", "name of the queue; null: no message was concerned that day"),
        text("tenant", "the tenant of the messages (pipeline.tenant); null: none"),
        long("messages", "messages that it concerned and that ended that day"),
        long("late", "messages that were done, but claimed too late"),
        long("dead", "messages that died"),
        long("limit_ms", "from send to last claim; more is late: the queue's target for the wait"),
        long("late_ms", "by how much late messages exceeded the limit, in total"),
        long("late_max_ms", "the same for the latest"),
    ),
)
_OUTAGES = StructType(
    [
        StructField("route", StringType()),
        StructField("from_at", LongType()),
        StructField("to_at", LongType()),
        StructField(DT, StringType()),
    ]
)


def outage_cost(tables: Tables, settings: PipelineSettings) -> DataFrame:
    found = _outages(tables, settings).alias("o")
    ended = _ended(tables["history"], settings).alias("m")
    recovered_at = 2 * F.col("o.to_at") - F.col("o.from_at")
    is_concerned = (
        (F.col("m.dt") == F.col("o.dt"))
        & (F.col("m.route") == F.col("o.route"))
        & (F.col("m.sent_at") <= recovered_at)
        & (F.col("m.finished_at") >= F.col("o.from_at"))
    )
    joined = found.join(ended, is_concerned, "left").select(
        *(f"o.{name}" for name in _OUTAGES.names),
        *(f"m.{name}" for name in ("queue", "tenant", "limit_ms", "outcome", "over_ms")),
    )
    is_late = (F.col("outcome") == State.DONE.value) & (F.col("over_ms") > 0)
    return (
        joined.groupBy(*_OUTAGES.names, "queue", "tenant")
        .agg(
            F.count("queue").alias("messages"),
            F.count_if(is_late).alias("late"),
            F.count_if(F.col("outcome") == State.DEAD.value).alias("dead"),
            F.max("limit_ms").alias("limit_ms"),
            F.coalesce(F.sum(F.when(is_late, F.col("over_ms"))), F.lit(0)).alias("late_ms"),
            F.max(F.when(is_late, F.col("over_ms"))).alias("late_max_ms"),
        )
        # The outage of the day before is a row only if it still made messages late.
        .where((F.col("to_at") >= _midnight()) | (F.col("late") + F.col("dead") > 0))
    )


def tenant(settings: PipelineSettings) -> Column:
    return F.col(settings.tenant_column).alias("tenant")


def _ended(history: DataFrame, settings: PipelineSettings) -> DataFrame:
    targets = [t for t in settings.service_levels if t.objective is Objective.WAIT]
    limit_ms = F.coalesce(first_match(targets, "limit_ms"), F.lit(LATE_MS)).cast("long")
    return (
        sound_rows(history, HISTORY)
        .where("route IS NOT NULL")
        .select(
            DT,
            "route",
            "queue",
            tenant(settings),
            "outcome",
            "sent_at",
            "finished_at",
            limit_ms.alias("limit_ms"),
            (F.col("leased_at") - F.col("sent_at") - limit_ms).alias("over_ms"),
        )
    )


def _outages(tables: Tables, settings: PipelineSettings) -> DataFrame:
    calls = route_calls(tables).withColumn("change", F.lit(None).cast("string"))
    facts = sound_rows(tables["facts"], FACTS).where(F.col("kind").isin(*CHANGES))
    changes = facts.select(
        DT,
        F.get_json_object("data", "$.pattern").alias("route"),
        "at",
        F.col("fact_no").alias("message_no"),
        (F.get_json_object("data", "$.was") == CircuitState.CLOSED.value).alias("is_failure"),
        F.col("kind").alias("change"),
    ).where("route IS NOT NULL")
    both = with_day_before(calls.unionByName(changes))
    return both.groupBy(DT, "route").applyInArrow(_finding(settings), _OUTAGES)


def _finding(settings: PipelineSettings) -> Any:
    schema = to_arrow_schema(_OUTAGES)

    def of_route(table: pa.Table) -> pa.Table:
        rows = table.sort_by([("at", "ascending"), ("message_no", "ascending")]).to_pylist()
        dt, route = rows[0][DT], rows[0]["route"]
        until = midnight_of(dt) + DAY
        # The same result whichever neighbouring days were loaded.
        rows = [row for row in rows if until - 2 * DAY <= row["at"] < until]
        calls = [
            RouteCall(row["at"], row["message_no"], row["is_failure"])
            for row in rows
            if row["change"] is None
        ]
        changes = [row for row in rows if row["change"] is not None]
        found = merge(
            [
                *outages(calls, least_ms=settings.breaker_outage_ms),
                *open_periods(changes, Interval(until - 2 * DAY, until)),
            ]
        )
        return pa.Table.from_pylist(
            [{"route": route, "from_at": one.from_at, "to_at": one.to_at, DT: dt} for one in found],
            schema,
        )

    return of_route


def open_periods(changes: Iterable[dict[str, Any]], within: Interval) -> list[Interval]:
    """When a circuit was not closed; its changes are in order of time.

    `is_failure` of a change: the circuit was closed before it.
    """
    found: list[Interval] = []
    since: int | None = None
    for n, one in enumerate(changes):
        if n == 0 and not one["is_failure"]:
            since = within.from_at
        if one["change"] == CLOSED:
            found += [Interval(since, one["at"])] if since is not None else []
            since = None
        elif since is None:
            since = one["at"]
    return [*found, *([Interval(since, within.to_at)] if since is not None else [])]


def merge(periods: Iterable[Interval]) -> list[Interval]:
    """In order of time; periods with less than a minute between them are one."""
    found: list[Interval] = []
    for one in sorted(periods, key=lambda one: (one.from_at, one.to_at)):
        if found and one.from_at - found[-1].to_at < MINUTE:
            found[-1] = Interval(found[-1].from_at, max(found[-1].to_at, one.to_at))
        else:
            found.append(one)
    return found


def _midnight() -> Column:
    return F.unix_millis(F.to_timestamp(F.col(DT)))


JOB = PipelineJob(
    name="outage_cost",
    summary="outages of routes, and the messages that they made late, by queue and tenant",
    inputs=("history", "attempts", "facts"),
    after=("quality",),
    outputs=(JobOutput(OUTAGE_COST, outage_cost),),
    lookback_days=1,
    settings=("service_levels", "tenant", "breaker_outage_ms"),
)
