"""One row per message that has ended: how long it waited, was worked on and took in all.

A dead message that was brought back ends once more, and each of its endings is a row.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.domain.lake.layout import HISTORY
from penstock.domain.message.lifecycle import State
from penstock.pipeline.checks import sound
from penstock.pipeline.job import Job, Output, Tables
from penstock.pipeline.schemas import Derived, integer, long, text
from penstock.pipeline.settings import JobSettings

LIFECYCLE = Derived(
    name="lifecycle",
    meaning="one row per ending of a message",
    is_large=True,
    fields=(
        long("message_no", "number of the message"),
        long("history_no", "number of the ending within its day"),
        text("id", "id of the message"),
        text("queue", "name of the queue"),
        text("kind", "picks the handler"),
        text("route", "where it belongs, as its sender says"),
        text("worker", "the worker that had it last"),
        text("outcome", "done, dead or cancelled"),
        long("sent_at", "when it was sent"),
        long("finished_at", "when it ended"),
        long("wait_ms", "from its sending to its first claim; null: it was never claimed"),
        long("service_ms", "from its last claim to its end; null: it is not done"),
        long("total_ms", "from its sending to its end"),
        integer("attempts", "claims that count"),
        integer("failures", "attempts that failed"),
        integer("crashes", "workers that died with it"),
        long("size", "bytes of the body"),
    ),
)


def lifecycle(tables: Tables, settings: JobSettings) -> DataFrame:
    return sound(tables["history"], HISTORY).select(
        "message_no",
        "history_no",
        "id",
        "queue",
        "kind",
        "route",
        F.col("leased_by").alias("worker"),
        "outcome",
        "sent_at",
        "finished_at",
        _between("sent_at", "first_leased_at").alias("wait_ms"),
        # Whoever ends a message otherwise need not be its holder, and its last claim long ago.
        F.when(F.col("outcome") == State.DONE.value, _between("leased_at", "finished_at")).alias(
            "service_ms"
        ),
        _between("sent_at", "finished_at").alias("total_ms"),
        "attempts",
        "failures",
        "crashes",
        "size",
        "dt",
    )


def _between(start: str, end: str) -> Column:
    return F.col(end) - F.col(start)


JOB = Job(
    name="lifecycle",
    summary="one row per message: wait, service and total time, attempts, outcome",
    inputs=("history",),
    after=("quality",),
    outputs=(Output(LIFECYCLE, lifecycle),),
)
