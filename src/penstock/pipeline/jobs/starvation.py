"""Who starves whom: whose work kept the workers busy while other messages waited too long.

Workers that claim from the same queues are a pool.  A message *starves* if it waits for its first
claim longer than its queue's target.  While it waits, its pool works for others: their shares of
the pool's working time, in steps of ten minutes, are counted for each queue and tenant.  Messages
that waited because of an outage of their route do not count.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from penstock.domain.lake.layout import HISTORY
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.domain.limits import DAY, MINUTE
from penstock.domain.message.lifecycle import State
from penstock.pipeline.checks import sound_rows
from penstock.pipeline.job import JobOutput, PipelineJob, Tables
from penstock.pipeline.jobs.outage_cost import tenant
from penstock.pipeline.jobs.outages import PERIOD, is_concerned, midnight
from penstock.pipeline.jobs.slo import wait_limit_ms
from penstock.pipeline.schemas import DT, ComputedTable, double, integer, long, text

STEP_MS = 10 * MINUTE
MOST = 3  # listed for each queue and tenant that starves

STARVATION = ComputedTable(
    name="starvation",
    meaning="queues and tenants whose messages wait too long, and who keeps the workers busy",
    fields=(
        text("pool", "the queues that its workers claim from, as a JSON array; null: any"),
        text("queue", "the queue that starves"),
        text("tenant", "the tenant that starves (pipeline.tenant); null: none"),
        long("late", "its messages that waited longer than the limit"),
        long("limit_ms", "how long they may wait: the queue's target for the wait"),
        long("wait_ms", "how long they waited, in total"),
        long("wait_max_ms", "the longest of these waits"),
        double("own_share", "its own share of the pool's working time meanwhile"),
        text("by_queue", "the queue that was worked on instead"),
        text("by_tenant", "its tenant; null: none"),
        double("share", "the share of that queue and tenant in the working time meanwhile"),
        integer("rank", "1 is the largest share"),
    ),
)
_WHO = ("queue", "tenant")
_EXACT = "decimal(38, 0)"  # times of absurd rows, multiplied, exceed a long


def starvation(tables: Tables, settings: PipelineSettings) -> DataFrame:
    ended = _with_pool(tables, settings)
    late = _without_outages(_late(ended, settings), tables["outage_cost"])
    steps = late.groupBy(DT, "pool", *_WHO, "from_step", "to_step").agg(
        F.count(F.lit(1)).alias("waiting")
    )
    waits = steps.withColumn("step", F.explode(F.sequence("from_step", "to_step")))
    taken = _work(ended).select(
        "pool", "step", F.col("queue").alias("by_queue"), F.col("tenant").alias("by_tenant"), "ms"
    )
    met = waits.alias("w").join(
        taken.alias("t"),
        F.col("w.pool").eqNullSafe(F.col("t.pool")) & (F.col("w.step") == F.col("t.step")),
    )
    # A step counts for as many messages as waited in it.
    by = met.groupBy(DT, "w.pool", *_WHO, "by_queue", "by_tenant").agg(
        F.sum(F.col("waiting") * F.col("ms").cast(_EXACT)).cast("double").alias("ms")
    )
    return (
        _rank_shares(by)
        .join(_totals(late), [DT, "pool_key", *_keys()], "inner")
        .select(
            DT,
            "pool",
            *_WHO,
            *("late", "limit_ms", "wait_ms", "wait_max_ms"),
            *("own_share", "by_queue", "by_tenant", "share", "rank"),
        )
    )


def _with_pool(tables: Tables, settings: PipelineSettings) -> DataFrame:
    """Claimed messages of registered workers; of others it is not known what they share."""
    known = tables["known_workers"].select(
        DT, F.col("worker").alias("leased_by"), F.col("queues").alias("pool")
    )
    ended = sound_rows(tables["history"], HISTORY).where("first_leased_at IS NOT NULL")
    return ended.select(
        DT,
        "queue",
        tenant(settings),
        "route",
        "leased_by",
        "outcome",
        *("sent_at", "first_leased_at", "leased_at", "finished_at"),
    ).join(known, [DT, "leased_by"])


def _late(ended: DataFrame, settings: PipelineSettings) -> DataFrame:
    # The day before its end is the earliest whose work is known whichever days were loaded.
    earliest = midnight() - DAY
    return (
        ended.withColumn("limit_ms", wait_limit_ms(settings))
        .withColumn("wait_ms", F.col("first_leased_at") - F.col("sent_at"))
        .where("wait_ms > limit_ms")
        .where(F.col("first_leased_at") >= earliest)
        .withColumn("from_step", _step(F.greatest(F.col("sent_at"), earliest)))
        .withColumn("to_step", _step(F.col("first_leased_at")))
    )


def _without_outages(late: DataFrame, costs: DataFrame) -> DataFrame:
    """Leaves out messages that waited for a route rather than for a worker."""
    outages = costs.select(*PERIOD).distinct().alias("o")
    is_held = is_concerned("m", "o", until="first_leased_at")
    return late.alias("m").join(outages, is_held, "left_anti")


def _work(ended: DataFrame) -> DataFrame:
    """Working time by step; the time of a message counts where it ended."""
    done = ended.where(F.col("outcome") == State.DONE.value)
    worked = F.col("finished_at") - F.col("leased_at")
    return done.groupBy("pool", _step(F.col("finished_at")).alias("step"), *_WHO).agg(
        F.sum(worked).alias("ms")
    )


def _rank_shares(by: DataFrame) -> DataFrame:
    """Shares of the working time, and the largest ones of others."""
    keyed = _add_join_keys(by)
    of_one = Window.partitionBy(DT, "pool_key", *_keys())
    is_own = F.col("queue").eqNullSafe(F.col("by_queue")) & F.col("tenant").eqNullSafe(
        F.col("by_tenant")
    )
    shares = keyed.withColumn("share", F.try_divide(F.col("ms"), F.sum("ms").over(of_one)))
    own = shares.withColumn(
        "own_share", F.coalesce(F.sum(F.when(is_own, F.col("share"))).over(of_one), F.lit(0.0))
    )
    ranked = of_one.orderBy(F.desc("share"), "by_queue", "by_tenant")
    others = own.where(~is_own & (F.col("share") > 0))
    return others.withColumn("rank", F.row_number().over(ranked)).where(F.col("rank") <= MOST)


def _totals(late: DataFrame) -> DataFrame:
    return (
        _add_join_keys(late)
        .groupBy(DT, "pool_key", *_keys())
        .agg(
            F.count(F.lit(1)).alias("late"),
            F.max("limit_ms").alias("limit_ms"),
            F.sum("wait_ms").alias("wait_ms"),
            F.max("wait_ms").alias("wait_max_ms"),
        )
    )


def _add_join_keys(rows: DataFrame) -> DataFrame:
    """Keys in which nulls are equal."""
    return rows.withColumns(
        {
            "pool_key": F.coalesce("pool", F.lit("")),
            "queue_key": F.col("queue"),
            "tenant_key": F.to_json(F.array("tenant")),
        }
    )


def _keys() -> tuple[str, str]:
    return "queue_key", "tenant_key"


def _step(at: Column) -> Column:
    return F.floor(at / STEP_MS)


JOB = PipelineJob(
    name="starvation",
    summary="who starves whom: waits beyond the target, and whose work the workers did meanwhile",
    inputs=("history", "known_workers", "outage_cost"),
    outputs=(JobOutput(STARVATION, starvation),),
    after=("quality",),
    lookback_days=1,
    only_own_day=("outage_cost",),
    settings=("service_levels", "tenant"),
)
