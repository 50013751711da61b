"""Endings per minute, hour and day, by queue, kind, route and worker."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.testing import assertDataFrameEqual

from penstock.domain.lake.layout import BACKLOG, HISTORY
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.pipeline import merged_sums, minute_sums
from penstock.pipeline.jobs.lifecycle import LIFECYCLE
from penstock.pipeline.jobs.rollups import ROLLUPS, rollups
from penstock.pipeline.schemas import conform
from tests.pipeline.rows import DT, NEXT_DT, at, computed, frame, midnight, pairs

ENDED = {
    "queue": "mail",
    "outcome": "done",
    "finished_at": at("12:00:01"),
    "wait_ms": 100,
    "service_ms": 40,
    "attempts": 1,
    "failures": 0,
    "crashes": 0,
    "size": 10,
    "dt": DT,
}


def rolled(
    spark: Any, *ended: dict[str, Any], backlog: tuple[dict[str, Any], ...] = ()
) -> DataFrame:
    tables = {
        "lifecycle": computed(spark, LIFECYCLE, *({**ENDED, **one} for one in ended)),
        "backlog": frame(spark, BACKLOG, *backlog),
    }
    return conform(rollups(tables, PipelineSettings()), ROLLUPS)


def test_two_messages_of_one_minute_are_one_row_of_the_minute_the_hour_and_the_day(spark):
    found = rolled(
        spark,
        {"finished_at": at("12:34:01")},
        {
            "finished_at": at("12:34:59.999"),
            "outcome": "dead",
            "service_ms": None,
            "attempts": 3,
            "failures": 2,
            "crashes": 1,
            "size": 5,
        },
    )

    same = {
        "dimension": "queue",
        "name": "mail",
        "finished": 2,
        "done": 1,
        "dead": 1,
        "cancelled": 0,
        "attempts": 4,
        "failures": 2,
        "crashes": 1,
        "bytes": 15,
        "failure_ratio": 0.5,
        "wait_p50_ms": 95,
        "wait_p95_ms": 103,
        "wait_p99_ms": 103,
        "wait_histogram": {27: 2},
        "service_p50_ms": 42,
        "service_p95_ms": 42,
        "service_p99_ms": 42,
        "service_histogram": {22: 1},
        "dt": DT,
    }
    assertDataFrameEqual(
        found,
        computed(
            spark,
            ROLLUPS,
            {**same, "grain": "minute", "at": at("12:34:00"), "per_second": 2 / 60},
            {**same, "grain": "hour", "at": at("12:00:00"), "per_second": 2 / 3600},
            {**same, "grain": "day", "at": midnight(), "per_second": 2 / 86_400},
        ),
    )


def test_only_the_dimensions_that_a_message_has_get_rows(spark):
    found = rolled(
        spark,
        {"queue": "a", "kind": "k", "route": "/r", "worker": "w"},
        {"queue": "b", "kind": "k"},
    )

    assert pairs(found.where("grain = 'day'"), "dimension", "name", "finished") == [
        ("kind", "k", 2),
        ("queue", "a", 1),
        ("queue", "b", 1),
        ("route", "/r", 1),
        ("worker", "w", 1),
    ]


def test_minutes_add_up_to_hours_and_hours_to_the_day(spark):
    clocks = ["00:00:00", "09:59:59.999", "10:00:00", "10:00:30", "10:01:00", "23:59:59.999"]

    found = rolled(spark, *({"finished_at": at(clock)} for clock in clocks))

    assert pairs(found.where("grain = 'hour'"), "at", "finished") == [
        (at("00:00:00"), 1),
        (at("09:00:00"), 1),
        (at("10:00:00"), 3),
        (at("23:00:00"), 1),
    ]
    assert pairs(found.where("grain = 'day'"), "at", "finished") == [(midnight(), 6)]
    for grain in ("minute", "hour", "day"):
        rows = found.where(f"grain = '{grain}'").collect()
        assert sum(sum(row.wait_histogram.values()) for row in rows) == 6


def test_days_stay_apart(spark):
    found = rolled(spark, {}, {"finished_at": at("00:00:00", NEXT_DT), "dt": NEXT_DT})

    assert pairs(found.where("grain = 'day'"), "dt", "at", "finished") == [
        (DT, midnight(DT), 1),
        (NEXT_DT, midnight(NEXT_DT), 1),
    ]


def test_the_backlog_of_a_queue_is_its_largest_ready_count(spark):
    found = rolled(
        spark,
        {"finished_at": at("12:00:10")},
        backlog=(
            {"at": at("12:00:00"), "ready": 7, "leased": 50},
            {"at": at("12:00:59"), "ready": 3},
            {"at": at("12:30:00"), "ready": 9},
        ),
    )

    assert pairs(found.where("grain != 'day'"), "grain", "at", "finished", "backlog") == [
        ("hour", at("12:00:00"), 1, 9),
        ("minute", at("12:00:00"), 1, 7),
        ("minute", at("12:30:00"), 0, 9),
    ]


def test_a_queue_without_endings_has_a_backlog_and_no_times(spark):
    [row] = rolled(spark, backlog=({"ready": 12},)).where("grain = 'minute'").collect()

    assert (row.finished, row.per_second, row.backlog) == (0, 0.0, 12)
    assert (row.failure_ratio, row.wait_p50_ms, row.wait_histogram) == (None, None, {})


def test_adding_up_in_many_chunks_gives_the_same_result(spark, monkeypatch):
    rows = [
        {"queue": f"q{n % 3}", "worker": "w", "finished_at": at(f"12:{n % 4:02}:00"), "wait_ms": n}
        for n in range(40)
    ]
    whole = rolled(spark, *rows).collect()
    narrow = pa.Table.from_pylist(
        [{**ENDED, "names": f"{r['queue']}\0\0\0w", **r, "outcome": 0, "bytes": 10} for r in rows],
        pa.schema(
            [
                ("names", pa.string()),
                *((n, pa.int64()) for n in ("finished_at", "wait_ms", "service_ms")),
                *((n, pa.int64()) for n in ("outcome", "attempts", "failures", "crashes", "bytes")),
            ]
        ),
    )

    monkeypatch.setattr(minute_sums, "CHUNK", 10)
    parts = list(minute_sums.partials(narrow.to_batches(max_chunksize=7)))
    by_name = [("dimension", "ascending"), ("name", "ascending")]
    in_order = pa.Table.from_batches(parts).sort_by(by_name)
    monkeypatch.setattr(merged_sums, "CHUNK_BYTES", 1)
    found = pa.Table.from_batches(
        list(merged_sums.merge_partials(in_order.to_batches(max_chunksize=3)))
    )

    assert len(parts) > 4
    by_key = {(r["grain"], r["at"], r["name"]): r for r in found.to_pylist()}
    assert len(by_key) == len(whole) == found.num_rows
    for row in whole:
        same = by_key[row["grain"], row["at"], row["name"]]
        assert dict(same["wait_histogram"]) == row["wait_histogram"]
        assert (same["finished"], same["bytes"]) == (row["finished"], row["bytes"])


def test_the_job_reads_what_lifecycle_and_the_archiver_wrote(driver):
    driver.archive(HISTORY, {"kind": "k"}, {"kind": "k"})
    driver.archive(BACKLOG, {"ready": 4, "sent_total": 6, "done_total": 2})

    driver.run("rollups")

    days = driver.read("rollups").where("grain = 'day'")
    assert pairs(days, "dimension", "name", "finished", "backlog") == [
        ("kind", "k", 2, None),
        ("queue", "mail", 2, 4),
    ]
