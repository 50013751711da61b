"""One row per ending of a message: its wait, service and total time.

A dead message that was redriven ends again, and each of its endings is a row.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.domain.lake.layout import HISTORY
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.domain.message.lifecycle import State
from penstock.pipeline.checks import sound_rows
from penstock.pipeline.job import JobOutput, PipelineJob, Tables
from penstock.pipeline.schemas import ComputedTable, integer, long, text

LIFECYCLE = ComputedTable(
    name="lifecycle",
    meaning="one row per ending of a message",
    is_large=True,
    fields=(
        long("message_no", "number of the message"),
        long("history_no", "number of the ending within its day"),
        text("id", "id of the message"),
        text("queue", "name of the queue"),
        text("kind", "picks the handler"),
        text("route", "the route that its sender set"),
        text("worker", "the worker that claimed it last"),
        text("outcome", "done, dead or cancelled"),
        long("sent_at", "when it was sent"),
        long("finished_at", "when it ended"),
        long("wait_ms", "from send to first claim; null: it was never claimed"),
        long("service_ms", "from last claim to end; null: it is not done"),
        long("total_ms", "from send to end"),
        integer("attempts", "claims that count"),
        integer("failures", "attempts that failed"),
        integer("crashes", "workers that crashed with it"),
        long("size", "bytes of the body"),
    ),
)


def lifecycle(tables: Tables, settings: PipelineSettings) -> DataFrame:
    is_done = F.col("outcome") == State.DONE.value
    return sound_rows(tables["history"], HISTORY).withColumns(
        {
            "worker": F.col("leased_by"),
            "wait_ms": _between("sent_at", "first_leased_at"),
            # Other endings may not come from a lease holder, and the last claim may be long ago.
            "service_ms": F.when(is_done, _between("leased_at", "finished_at")),
            "total_ms": _between("sent_at", "finished_at"),
        }
    )


def _between(start: str, end: str) -> Column:
    return F.col(end) - F.col(start)


JOB = PipelineJob(
    name="lifecycle",
    summary="one row per message: wait, service and total time, attempts, outcome",
    inputs=("history",),
    after=("quality",),
    outputs=(JobOutput(LIFECYCLE, lifecycle),),
)
