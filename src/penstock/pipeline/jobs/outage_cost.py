"""What outages cost: the messages of a route that were late or died because of one.

An outage is a period in which at least half of the route's calls failed (pipeline/jobs/outages.py)
or its circuit was not closed; overlapping periods are one.  It concerns the messages of the route
that were sent before it had ended, or while the route recovered (as long again as it had lasted),
and that ended after it had begun.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.domain.circuit.circuit import CircuitState
from penstock.domain.lake.layout import FACTS, HISTORY
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.domain.message.lifecycle import State
from penstock.pipeline.checks import sound_rows
from penstock.pipeline.job import JobOutput, PipelineJob, Tables
from penstock.pipeline.jobs.outages import (
    PERIOD,
    failing_periods,
    is_concerned,
    merge,
    midnight,
    minute_sums,
    open_periods,
)
from penstock.pipeline.jobs.poison_facts import CHANGES
from penstock.pipeline.jobs.route_calls import route_calls, with_day_before
from penstock.pipeline.jobs.slo import wait_limit_ms
from penstock.pipeline.schemas import DT, ComputedTable, long, text

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


def outage_cost(tables: Tables, settings: PipelineSettings) -> DataFrame:
    outages = _outages(tables, settings)
    ended = _ended_messages(tables["history"], settings).alias("m")
    is_late = (F.col("outcome") == State.DONE.value) & (F.col("over_ms") > 0)
    # An inner join, whose larger side Spark can split if one route has most of the messages.
    costs = (
        ended.join(outages.alias("o"), is_concerned("m", "o", until="finished_at"))
        .groupBy(*(F.col(f"o.{name}") for name in PERIOD), "queue", "tenant")
        .agg(
            F.count(F.lit(1)).alias("messages"),
            F.count_if(is_late).alias("late"),
            F.count_if(F.col("outcome") == State.DEAD.value).alias("dead"),
            F.max("limit_ms").alias("limit_ms"),
            F.sum(F.when(is_late, F.col("over_ms"))).alias("late_ms"),
            F.max(F.when(is_late, F.col("over_ms"))).alias("late_max_ms"),
        )
    )
    return (
        outages.join(costs, list(PERIOD), "left")
        .na.fill(0, ["messages", "late", "dead", "late_ms"])
        # The outage of the day before is a row only if it still made messages late.
        .where((F.col("to_at") >= midnight()) | (F.col("late") + F.col("dead") > 0))
    )


def tenant(settings: PipelineSettings) -> Column:
    return F.col(settings.tenant_column).alias("tenant")


def _ended_messages(history: DataFrame, settings: PipelineSettings) -> DataFrame:
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
            "leased_at",
            wait_limit_ms(settings).alias("limit_ms"),
        )
        .withColumn("over_ms", F.col("leased_at") - F.col("sent_at") - F.col("limit_ms"))
    )


def _outages(tables: Tables, settings: PipelineSettings) -> DataFrame:
    minutes = with_day_before(minute_sums(route_calls(tables)))
    failing = failing_periods(minutes, least_ms=settings.breaker_outage_ms)
    return merge(failing.unionByName(open_periods(with_day_before(_changes(tables["facts"])))))


def _changes(facts: DataFrame) -> DataFrame:
    was = F.get_json_object("data", "$.was")
    found = sound_rows(facts, FACTS).where(F.col("kind").isin(*CHANGES))
    return found.select(
        DT,
        F.get_json_object("data", "$.pattern").alias("route"),
        "at",
        "fact_no",
        "kind",
        F.coalesce(was == CircuitState.CLOSED.value, F.lit(False)).alias("was_closed"),
    ).where("route IS NOT NULL")


JOB = PipelineJob(
    name="outage_cost",
    summary="outages of routes, and the messages that they made late, by queue and tenant",
    inputs=("history", "attempts", "facts"),
    after=("quality",),
    outputs=(JobOutput(OUTAGE_COST, outage_cost),),
    lookback_days=1,
    settings=("service_levels", "tenant", "breaker_outage_ms"),
)
