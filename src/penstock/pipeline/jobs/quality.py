"""Checks whether a day's rows are complete and sound; later jobs do not load a day that fails.

rows        no value missing, no duration negative, every row in its day      quarantined
            durations below 0 after the clock was set back                    only quarantined
uniqueness  no number twice, no message done twice                            stops the day
balance     sent = waiting + ready + leased + done + dead + cancelled         stops the day
counted     as many endings in the lake as the broker has counted             only reported
"""

from __future__ import annotations

from collections.abc import Collection
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.domain.lake import layout as lake
from penstock.domain.lake.layout import LakeTable
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.domain.message.lifecycle import State
from penstock.pipeline.checks import (
    ALWAYS_STOPS,
    CLOCK_PROBLEMS,
    DOUBLED,
    counts_of,
    doubled_rows,
    problems_of,
    sound_rows,
    with_problems,
)
from penstock.pipeline.job import JobOutput, PipelineJob, Tables
from penstock.pipeline.lake import SparkLake
from penstock.pipeline.schemas import DT, ComputedTable, boolean, long, text

CHECKED = (lake.HISTORY, lake.ATTEMPTS, lake.FACTS, lake.BACKLOG)
SET_BACK = "clock_set_back"  # the fact that the store's clock was ahead, and from when
SET_BACK_DAYS = 1  # how much later messages that were claimed by that clock may still end
CLOCK_INSTANTS = ("sent_at", "first_leased_at", "leased_at")
SLACK_MS = 5_000  # how long after its instant an ending may be committed

QUALITY = ComputedTable(
    name="quality",
    meaning="the results of a day's checks",
    fields=(
        text("table", "the table that was checked"),
        text("check", "name of the check"),
        long("rows", "rows that were checked"),
        long("bad", "rows that did not pass"),
        boolean("is_passed", "whether the check passed"),
        boolean("is_stopping", "whether the day is not loaded if the check fails"),
    ),
)

QUARANTINE = ComputedTable(
    name="quarantine",
    meaning="rows that no job reads because of their problems",
    fields=(
        text("table", "the table of the row"),
        long("number", "number of the row in its table and day"),
        text("problems", "its problems, separated by commas"),
        text("row", "the whole row as a JSON object"),
    ),
)


def quality(tables: Tables, settings: PipelineSettings) -> DataFrame:
    ahead = _clock_ahead(tables["facts"])
    parts = [_rows(tables[table.name], table, ahead, settings) for table in CHECKED]
    parts += [
        _done_twice(tables["history"]),
        _compare_with_counters(tables["history"], tables["backlog"]),
    ]
    return reduce(DataFrame.unionByName, parts)


def quarantine(tables: Tables, settings: PipelineSettings) -> DataFrame:
    parts = [_bad_rows(tables[table.name], table) for table in CHECKED]
    return reduce(DataFrame.unionByName, parts)


def refused_days(of: SparkLake, days: Collection[str]) -> dict[str, str]:
    """The days that must not be loaded, with the reasons."""
    found = of.read(QUALITY.name, days).where("is_stopping AND NOT is_passed")
    notes: dict[str, list[str]] = {}
    for row in found.orderBy(DT, "table", "check").collect():
        note = f"{row['table']}: {row['check']} ({row['bad']} of {row['rows']})"
        notes.setdefault(row[DT], []).append(note)
    return {day: ", ".join(of_day) for day, of_day in notes.items()}


def _rows(
    rows: DataFrame, table: LakeTable, ahead: DataFrame, settings: PipelineSettings
) -> DataFrame:
    """All checks of single rows, and of the uniqueness of their numbers, in one pass."""
    problems = problems_of(table)
    # Rows with times from before the clock was set back do not mean that the lake is damaged.
    explained = {name: f"{name}_explained" for name in problems if name in CLOCK_PROBLEMS}
    instants = [c.name for c in table.columns if c.name in CLOCK_INSTANTS]
    is_explained = F.greatest(F.lit(0), F.lit(0), *instants) <= F.col("ahead_until")
    counted = counts_of(
        rows.join(F.broadcast(ahead), DT, "left"),
        table.number,
        problems | {alias: problems[name] & is_explained for name, alias in explained.items()},
    )
    found = counted.unpivot([DT, "rows", *explained.values()], [*problems, DOUBLED], "check", "bad")
    # A duplicate means that the lake itself is broken.
    is_always = F.col("check").isin(*ALWAYS_STOPS, DOUBLED)
    tolerated = F.when(is_always, 0.0).otherwise(
        F.col("rows") * F.lit(settings.max_bad_per_million) / 1_000_000
    )
    own = [F.when(F.col("check") == name, F.col(alias)) for name, alias in explained.items()]
    forgiven = F.coalesce(*own, F.lit(0))
    return _findings(found, table.name, is_passed=F.col("bad") - forgiven <= tolerated)


def _clock_ahead(facts: DataFrame) -> DataFrame:
    """By day: the latest reading of clocks that were set back on it or on the day before."""
    found = sound_rows(facts, lake.FACTS).where(F.col("kind") == SET_BACK)
    reading = F.get_json_object("data", "$.from").try_cast("long")
    days = F.sequence(F.to_date(DT), F.date_add(F.to_date(DT), SET_BACK_DAYS))
    dated = found.select(F.explode(days).alias("day"), reading.alias("reading"))
    by_day = dated.groupBy(F.date_format("day", "yyyy-MM-dd").alias(DT))
    return by_day.agg(F.max("reading").alias("ahead_until"))


def _done_twice(history: DataFrame) -> DataFrame:
    done = history.where(F.col("outcome") == State.DONE.value)
    found = counts_of(done, "message_no").withColumnsRenamed({DOUBLED: "bad"})
    named = found.withColumn("check", F.lit("done_twice"))
    return _findings(named, "history", is_passed=F.col("bad") == 0)


def _compare_with_counters(history: DataFrame, backlog: DataFrame) -> DataFrame:
    """Compare endings with counters between the first and last sample of a day, per queue."""
    sound = sound_rows(backlog, lake.BACKLOG)
    samples = sound.groupBy(F.col(DT).alias("sample_dt"), F.col("queue_no").alias("of")).agg(
        F.min("at").alias("first_at"),
        F.max("at").alias("last_at"),
        (F.max("done_total") - F.min("done_total")).alias("counted"),
    )
    done = history.where(F.col("outcome") == State.DONE.value).select(DT, "queue_no", "finished_at")
    on = (F.col(DT) == F.col("sample_dt")) & (F.col("queue_no") == F.col("of"))
    joined = samples.join(done, on=on, how="left")
    by_queue = joined.groupBy("sample_dt", "of", "counted").agg(
        F.count_if(_within(SLACK_MS)).alias("least"), F.count_if(_within(-SLACK_MS)).alias("most")
    )
    is_off = (F.col("counted") < F.col("least")) | (F.col("counted") > F.col("most"))
    found = by_queue.groupBy(F.col("sample_dt").alias(DT)).agg(
        F.try_sum("counted").alias("rows"), F.count_if(is_off).alias("bad")
    )
    named = found.withColumn("check", F.lit("counted"))
    return _findings(named, "history", is_passed=F.col("bad") == 0, is_stopping=False)


def _within(slack: int) -> Column:
    return (F.col("finished_at") > F.col("first_at") + slack) & (
        F.col("finished_at") <= F.col("last_at") - slack
    )


def _findings(
    found: DataFrame, table: str, *, is_passed: Column, is_stopping: bool = True
) -> DataFrame:
    return found.select(
        F.lit(table).alias("table"),
        "check",
        "rows",
        "bad",
        is_passed.alias("is_passed"),
        F.lit(is_stopping).alias("is_stopping"),
        DT,
    )


def _bad_rows(rows: DataFrame, table: LakeTable) -> DataFrame:
    doubles = doubled_rows(rows, table.number).withColumn("problems", F.array(F.lit(DOUBLED)))
    bad = with_problems(rows, table).unionByName(doubles)
    return bad.select(
        F.lit(table.name).alias("table"),
        F.col(table.number).alias("number"),
        F.array_join("problems", ", ").alias("problems"),
        F.to_json(F.struct(*(column.name for column in table.columns))).alias("row"),
        DT,
    )


JOB = PipelineJob(
    name="quality",
    summary="checks that stop a bad day: balance, durations, uniqueness; quarantine of bad rows",
    inputs=tuple(table.name for table in CHECKED),
    outputs=(JobOutput(QUALITY, quality), JobOutput(QUARANTINE, quarantine)),
    lookback_days=SET_BACK_DAYS,
    only_own_day=tuple(table.name for table in CHECKED if table is not lake.FACTS),
    settings=("max_bad_per_million",),
    version=2,
)
