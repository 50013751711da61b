"""One row per message that has ended."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.testing import assertDataFrameEqual

from penstock.domain.lake.layout import HISTORY
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.pipeline.jobs.lifecycle import LIFECYCLE, lifecycle
from penstock.pipeline.schemas import conform
from tests.pipeline.rows import DT, NOON, computed, frame


def lives(spark: Any, *history: dict[str, Any]) -> DataFrame:
    tables = {"history": frame(spark, HISTORY, *history)}
    return conform(lifecycle(tables, PipelineSettings()), LIFECYCLE)


def test_a_finished_message_has_its_wait_its_service_and_its_total_time(spark):
    found = lives(
        spark,
        {
            "id": "m-7",
            "queue": "mail",
            "kind": "welcome",
            "route": "/mail/.*",
            "leased_by": "w-1",
            "sent_at": NOON - 10_000,
            "first_leased_at": NOON - 7_000,
            "leased_at": NOON - 2_000,
            "finished_at": NOON,
            "attempts": 2,
            "failures": 1,
            "size": 42,
        },
    )

    expected = computed(
        spark,
        LIFECYCLE,
        {
            "message_no": 1,
            "history_no": 1,
            "id": "m-7",
            "queue": "mail",
            "kind": "welcome",
            "route": "/mail/.*",
            "worker": "w-1",
            "outcome": "done",
            "sent_at": NOON - 10_000,
            "finished_at": NOON,
            "wait_ms": 3_000,
            "service_ms": 2_000,
            "total_ms": 10_000,
            "attempts": 2,
            "failures": 1,
            "crashes": 0,
            "size": 42,
            "dt": DT,
        },
    )
    assertDataFrameEqual(found, expected)


def test_a_message_that_was_never_claimed_has_no_wait_and_no_service(spark):
    [row] = lives(
        spark, {"outcome": "cancelled", "first_leased_at": None, "leased_at": None}
    ).collect()

    assert (row.wait_ms, row.service_ms, row.total_ms) == (None, None, 1_500)


def test_a_message_that_is_not_done_has_no_service_time(spark):
    [row] = lives(spark, {"outcome": "dead"}).collect()

    assert (row.wait_ms, row.service_ms) == (1_000, None)


def test_a_dead_message_that_was_brought_back_has_a_row_for_each_of_its_endings(spark):
    found = lives(
        spark,
        {"message_no": 5, "outcome": "dead"},
        {"message_no": 5, "outcome": "done", "finished_at": NOON + 9},
    )

    assert sorted((r.message_no, r.outcome) for r in found.collect()) == [(5, "dead"), (5, "done")]
