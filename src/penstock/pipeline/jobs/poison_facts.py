"""Routes whose circuits keep opening and closing, and workers whose beats were missed."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from penstock.domain import worker as workers
from penstock.domain.circuit.circuit import CircuitState
from penstock.domain.lake.layout import ATTEMPTS, FACTS
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.domain.limits import DAY
from penstock.domain.message.history import AttemptOutcome
from penstock.pipeline.checks import sound_rows
from penstock.pipeline.job import Tables
from penstock.pipeline.schemas import DT, ComputedTable, boolean, long, text

OPENED, REOPENED, HALF_OPENED, CLOSED = (
    "circuit_opened",
    "circuit_reopened",
    "circuit_half_opened",
    "circuit_closed",
)
CHANGES = (OPENED, REOPENED, HALF_OPENED, CLOSED)

FLAPPING_ROUTES = ComputedTable(
    name="flapping_routes",
    meaning="circuits that changed their state, and how often",
    fields=(
        text("circuit", "name of the circuit"),
        text("route", "the pattern it guards"),
        long("opened", "times it opened"),
        long("reopened", "times a probe failed"),
        long("closed", "times it closed"),
        long("changes", "all changes"),
        long("open_ms", "how long it was open that day"),
        boolean("is_flapping", "it changed more often than is tolerable"),
    ),
)

SILENT_WORKERS = ComputedTable(
    name="silent_workers",
    meaning="workers whose beats were missed, or whose leases expired",
    fields=(
        text("worker", "id of the worker"),
        text("name", "its name"),
        text("host", "where it ran"),
        long("lost", "times it was marked as lost because no beat came"),
        long("silent_ms", "the longest silence before that"),
        long("expired", "its leases that expired"),
        long("crashed", "messages it crashed with"),
        long("last_at", "when one of these last happened"),
    ),
)


def flapping_routes(tables: Tables, settings: PipelineSettings) -> DataFrame:
    facts = sound_rows(tables["facts"], FACTS).where(F.col("kind").isin(list(CHANGES)))
    by_circuit = Window.partitionBy(DT, "subject").orderBy("at", "fact_no")
    midnight = F.expr(f"at div {DAY} * {DAY}")
    changes = facts.select(
        DT,
        "subject",
        "kind",
        "at",
        _from_data("pattern").alias("pattern"),
        F.coalesce(F.lead("at").over(by_circuit), midnight + DAY).alias("until"),
        # The first change of a day has the state since midnight.
        F.when(
            F.lag("at").over(by_circuit).isNull() & (_from_data("was") == CircuitState.OPEN.value),
            F.col("at") - midnight,
        ).alias("open_before"),
    )
    open_ms = F.when(F.col("kind").isin(OPENED, REOPENED), F.col("until") - F.col("at"))
    return (
        changes.groupBy(DT, F.col("subject").alias("circuit"))
        .agg(
            F.max("pattern").alias("route"),
            F.count_if(F.col("kind") == OPENED).alias("opened"),
            F.count_if(F.col("kind") == REOPENED).alias("reopened"),
            F.count_if(F.col("kind") == CLOSED).alias("closed"),
            F.count(F.lit(1)).alias("changes"),
            (_sum(open_ms) + _sum(F.col("open_before"))).alias("open_ms"),
        )
        .withColumn("is_flapping", F.col("changes") >= settings.flapping_changes)
    )


def silent_workers(tables: Tables, settings: PipelineSettings) -> DataFrame:
    lost = sound_rows(tables["facts"], FACTS).where(F.col("kind") == workers.LOST)
    of_facts = lost.select(
        DT,
        F.col("subject").alias("worker"),
        _from_data("name").alias("name"),
        _from_data("host").alias("host"),
        _silence().alias("silent_ms"),
        "at",
        F.lit(workers.LOST).alias("what"),
    )
    of_leases = (
        sound_rows(tables["attempts"], ATTEMPTS)
        .where(F.col("outcome").isin(AttemptOutcome.EXPIRED.value, AttemptOutcome.CRASHED.value))
        .where(F.col("leased_by").isNotNull())
        .select(
            DT,
            F.col("leased_by").alias("worker"),
            F.col("ended_at").alias("at"),
            F.col("outcome").alias("what"),
        )
    )
    everything = of_facts.unionByName(of_leases, allowMissingColumns=True)
    return everything.groupBy(DT, "worker").agg(
        F.max("name").alias("name"),
        F.max("host").alias("host"),
        F.count_if(F.col("what") == workers.LOST).alias("lost"),
        F.max("silent_ms").alias("silent_ms"),
        F.count_if(F.col("what") == AttemptOutcome.EXPIRED.value).alias("expired"),
        F.count_if(F.col("what") == AttemptOutcome.CRASHED.value).alias("crashed"),
        F.max("at").alias("last_at"),
    )


def _silence() -> Column:
    """From the last beat to the fact; 0 if the clock was set back between them."""
    beat_at = _from_data("beat_at").try_cast("long")
    silent_ms = F.try_subtract("at", beat_at)
    return F.when(silent_ms < 0, F.lit(0).cast("long")).otherwise(silent_ms)


def _from_data(name: str) -> Column:
    return F.get_json_object("data", f"$.{name}")


def _sum(column: Column) -> Column:
    return F.coalesce(F.sum(column), F.lit(0).cast("long"))
