"""Finds messages and kinds that fail, crash, loop or flap, flapping routes, and silent workers.

fails     attempts of one message fail repeatedly
crashes   workers crash with it
loops     it comes back repeatedly without failing or ending: its lease expires, or the worker
          releases or snoozes it
flaps     it dies, is redriven, and dies again
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from penstock.domain.lake.layout import ATTEMPTS, HISTORY
from penstock.domain.lake.pipeline_settings import PipelineSettings, settings_named
from penstock.domain.message.history import AttemptOutcome
from penstock.domain.message.lifecycle import State
from penstock.pipeline.checks import sound_rows
from penstock.pipeline.job import JobOutput, PipelineJob, Tables
from penstock.pipeline.jobs.poison_facts import (
    FLAPPING_ROUTES,
    SILENT_WORKERS,
    flapping_routes,
    silent_workers,
)
from penstock.pipeline.schemas import DT, ComputedTable, boolean, double, long, text

_FAILED = (AttemptOutcome.FAILED, AttemptOutcome.TIMED_OUT)
_RETURNED = (AttemptOutcome.EXPIRED, AttemptOutcome.RELEASED, AttemptOutcome.SNOOZED)

MESSAGES = ComputedTable(
    name="poison_messages",
    meaning="messages that fail, crash, loop or flap",
    fields=(
        long("message_no", "number of the message"),
        text("id", "id of the message"),
        text("queue", "name of the queue"),
        text("kind", "picks the handler; null: it has not ended that day"),
        text("route", "its route; null: none, or it has not ended that day"),
        text("patterns", "fails, crashes, loops, flaps: those that apply, separated by commas"),
        long("failed", "attempts that failed or timed out"),
        long("crashed", "workers that crashed with it"),
        long("returned", "times it came back without failing or ending"),
        long("died", "times it died"),
        long("workers", "distinct workers that claimed it"),
        text("last_error", "its last error"),
        long("first_at", "when the trouble began"),
        long("last_at", "when it last happened"),
    ),
)

KINDS = ComputedTable(
    name="poison_kinds",
    meaning="kinds whose messages fail, crash workers or die",
    fields=(
        text("queue", "name of the queue"),
        text("kind", "picks the handler; null: none"),
        long("messages", "messages that ended"),
        long("failing", "messages that failed, crashed a worker or died"),
        double("failing_ratio", "failing divided by messages"),
        long("failures", "attempts that failed"),
        long("crashes", "workers that crashed"),
        long("dead", "messages that died"),
        text("common_error", "the most frequent last error"),
        boolean("is_poison", "more of them fail than is tolerable, or workers crashed"),
    ),
)

RELEASES = ComputedTable(
    name="poison_releases",
    meaning="kinds with failing messages, by the release of the workers",
    fields=(
        text("queue", "name of the queue"),
        text("kind", "picks the handler; null: none"),
        text("release", "the label release of the worker that claimed it last; null: unknown"),
        long("messages", "messages that ended"),
        long("failing", "messages that failed, crashed a worker or died"),
        double("failing_ratio", "failing divided by messages"),
        long("first_at", "when the first of these messages ended"),
        boolean("is_poison", "more of them fail than is tolerable, or workers crashed"),
    ),
)


_TROUBLE = (DT, "message_no", "id", "queue", "outcome")


def poison_messages(tables: Tables, settings: PipelineSettings) -> DataFrame:
    trouble = _attempts(tables["attempts"]).unionByName(_deaths(tables["history"]))
    counted = trouble.groupBy(DT, "message_no").agg(
        F.max("id").alias("id"),
        F.max("queue").alias("queue"),
        _count(_FAILED).alias("failed"),
        _count((AttemptOutcome.CRASHED,)).alias("crashed"),
        _count(_RETURNED).alias("returned"),
        F.count_if(F.col("outcome") == State.DEAD.value).alias("died"),
        F.count_distinct("worker").alias("workers"),
        F.max_by("error", F.when(F.col("error").isNotNull(), F.col("at"))).alias("last_error"),
        F.min("at").alias("first_at"),
        F.max("at").alias("last_at"),
    )
    named = _patterns(settings)
    suspects = counted.withColumn("patterns", F.array_join(named, ", ")).where("patterns != ''")
    return suspects.join(_labels(tables["history"], suspects), on=[DT, "message_no"], how="left")


def poison_kinds(tables: Tables, settings: PipelineSettings) -> DataFrame:
    counted = sound_rows(tables["history"], HISTORY).groupBy(DT, "queue", "kind")
    return _with_verdict(
        counted.agg(
            *_counts(),
            F.sum("failures").alias("failures"),
            F.count_if(F.col("outcome") == State.DEAD.value).alias("dead"),
            F.mode(F.when(_is_failing(), F.col("last_error")), deterministic=True).alias(
                "common_error"
            ),
        ).where("failing > 0"),
        settings,
    )


def poison_releases(tables: Tables, settings: PipelineSettings) -> DataFrame:
    known = tables["known_workers"].select(DT, F.col("worker").alias("leased_by"), "release")
    ended = sound_rows(tables["history"], HISTORY).join(known, [DT, "leased_by"], "left")
    of_release = ended.groupBy(DT, "queue", "kind", "release").agg(
        *_counts(), F.min("finished_at").alias("first_at")
    )
    # All releases of a kind that fails with one of them: they show where it began.
    of_kind = Window.partitionBy(DT, "queue", "kind")
    failing = of_release.withColumn("of_kind", F.sum("failing").over(of_kind)).where("of_kind > 0")
    return _with_verdict(failing, settings)


def _is_failing() -> Column:
    return (F.col("failures") > 0) | (F.col("crashes") > 0) | (F.col("outcome") == State.DEAD.value)


def _counts() -> list[Column]:
    return [
        F.count(F.lit(1)).alias("messages"),
        F.count_if(_is_failing()).alias("failing"),
        F.sum("crashes").alias("crashes"),
    ]


def _with_verdict(counted: DataFrame, settings: PipelineSettings) -> DataFrame:
    ratio = F.col("failing") / F.col("messages")
    is_much = ratio * 100 >= settings.poison_ratio_percent
    return counted.withColumn("failing_ratio", ratio).withColumn(
        "is_poison", is_much | (F.col("crashes") >= settings.poison_crashes)
    )


def _attempts(attempts: DataFrame) -> DataFrame:
    return sound_rows(attempts, ATTEMPTS).select(
        *_TROUBLE,
        F.col("ended_at").alias("at"),
        F.col("leased_by").alias("worker"),
        "error",
    )


def _deaths(history: DataFrame) -> DataFrame:
    """Deaths, without their last attempts, which are already counted among the attempts."""
    dead = sound_rows(history, HISTORY).where(F.col("outcome") == State.DEAD.value)
    return dead.select(
        *_TROUBLE,
        F.col("finished_at").alias("at"),
        F.lit(None).cast("string").alias("worker"),
        F.col("last_error").alias("error"),
    )


def _labels(history: DataFrame, suspects: DataFrame) -> DataFrame:
    """Kind and route of the suspects that have ended: usually few among very many messages."""
    numbers = suspects.select(DT, "message_no")
    found = history.select(DT, "message_no", "kind", "route").join(numbers, [DT, "message_no"])
    return found.groupBy(DT, "message_no").agg(
        F.max("kind").alias("kind"), F.max("route").alias("route")
    )


def _patterns(settings: PipelineSettings) -> Column:
    rules = {
        "fails": F.col("failed") >= settings.poison_failures,
        "crashes": F.col("crashed") >= settings.poison_crashes,
        "loops": F.col("returned") >= settings.poison_returns,
        "flaps": F.col("died") >= 2,
    }
    return F.array_compact(F.array(*(F.when(rule, F.lit(n)) for n, rule in rules.items())))


def _count(outcomes: tuple[AttemptOutcome, ...]) -> Column:
    return F.count_if(F.col("outcome").isin([outcome.value for outcome in outcomes]))


JOB = PipelineJob(
    name="poison",
    summary="messages and kinds that fail, flap, crash or loop; flapping routes; silent workers",
    inputs=("history", "attempts", "facts", "known_workers"),
    outputs=(
        JobOutput(MESSAGES, poison_messages),
        JobOutput(KINDS, poison_kinds),
        JobOutput(RELEASES, poison_releases),
        JobOutput(FLAPPING_ROUTES, flapping_routes),
        JobOutput(SILENT_WORKERS, silent_workers),
    ),
    after=("quality",),
    settings=(*settings_named("poison_"), "flapping_changes"),
    version=2,
)
