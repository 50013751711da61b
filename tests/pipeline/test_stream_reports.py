"""What a running stream reports: each batch, and the growing lag while nothing arrives."""

from __future__ import annotations

from uuid import UUID

from pyspark.sql import Row
from pyspark.sql.streaming.listener import SinkProgress, StreamingQueryProgress

from penstock.domain.datetimes import moment_of
from penstock.domain.limits import MINUTE
from penstock.edge.cli.pipeline.stream import BatchRecords
from penstock.pipeline.streaming import NEWEST
from tests.pipeline.rows import NOON


def progress(at: int, *, batch: int = 0, rows: int = 0, newest: int | None = None):
    """As Spark gives it: `at` is the beginning of a trigger, which takes a second."""
    return StreamingQueryProgress(
        id=UUID(int=1), runId=UUID(int=2), name=None,
        timestamp=moment_of(at).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z",
        batchId=batch, batchDuration=1_000, durationMs={"triggerExecution": 1_000},
        eventTime={}, stateOperators=[], sources=[], sink=SinkProgress("", 0, {}),
        numInputRows=rows, inputRowsPerSecond=0.0, processedRowsPerSecond=0.0,
        observedMetrics={} if newest is None else {NEWEST: Row(at=newest)},
    )  # fmt: skip


def test_the_lag_is_reported_each_minute_while_no_row_arrives():
    records = BatchRecords()
    kept = [progress(NOON, rows=4, newest=NOON - 5_000)]

    [batch] = records.new(kept)
    kept += [progress(NOON + seconds * 1_000, batch=1) for seconds in range(10, 150, 10)]
    idle = list(records.new(kept))

    assert (batch["rows"], batch["per_second"], batch["lag_ms"]) == (4, 4.0, 6_000)
    assert [(one["rows"], one["lag_ms"]) for one in idle] == [
        (0, 6_000 + MINUTE),
        (0, 6_000 + 2 * MINUTE),
    ]
    assert list(records.new(kept)) == []


def test_before_the_first_row_there_is_no_lag_to_report():
    waiting = [progress(NOON + minute * MINUTE) for minute in range(3)]

    assert [one["lag_ms"] for one in BatchRecords().new(waiting)] == [None, None]


def test_an_older_row_that_comes_late_does_not_change_the_newest_one():
    late = [
        progress(NOON, rows=1, newest=NOON),
        progress(NOON + 1_000, batch=1, rows=1, newest=NOON - MINUTE),
    ]

    assert [one["lag_ms"] for one in BatchRecords().new(late)] == [1_000, 2_000]
