"""Load, cost and storage, by queue and in total."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame

from penstock.domain.lake.layout import BACKLOG
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.pipeline.job import TablesOfDays
from penstock.pipeline.jobs.capacity import CAPACITY, capacity
from penstock.pipeline.jobs.rollups import ROLLUPS
from penstock.pipeline.schemas import conform
from tests.pipeline.rows import DT, at, computed, day_after, frame, midnight

GIB = 1024**3
MINUTE: dict[str, Any] = {
    "grain": "minute",
    "at": at("12:00:00"),
    "dimension": "queue",
    "name": "mail",
    "finished": 60,
    "attempts": 60,
    "bytes": 60_000,
    "dt": DT,
}


def found(
    spark: Any, *rows: dict[str, Any], samples: tuple[dict[str, Any], ...] = (), **settings: Any
) -> dict[tuple[str, str], Any]:
    tables: dict[str, DataFrame] = {
        "rollups": computed(spark, ROLLUPS, *({**MINUTE, **row} for row in rows)),
        "backlog": frame(spark, BACKLOG, *samples),
    }
    table = conform(capacity(tables, PipelineSettings(**settings)), CAPACITY)
    return {(row["dt"], row["queue"]): row for row in table.collect()}


def test_bandwidth_cost_and_peak_follow_the_formulas(spark):
    rows = found(
        spark,
        {},
        {"at": at("12:01:00"), "finished": 120, "attempts": 240, "bytes": 120_000},
        cost_per_gib="2",
    )

    mail = rows[DT, "mail"]
    moved = 60_000 * 2 + 120_000 * 3  # in once, out with every attempt
    assert (mail.messages, mail.payload, mail.moved) == (180, 1_000.0, moved)
    assert mail.bandwidth == pytest.approx(moved / 86_400)
    assert (mail.bandwidth_peak, mail.per_second_peak) == (6_000.0, 2.0)
    assert mail.peak_at == at("12:01:00")
    assert mail.peak_to_average == pytest.approx(2.0 / (180 / 86_400))
    assert mail.cost == pytest.approx(moved / GIB * 2.0)
    assert rows[DT, "*"].asDict() == {**mail.asDict(), "queue": "*"}


def test_the_peak_of_all_is_that_of_the_minute_in_which_most_happens_together(spark):
    rows = found(
        spark, {}, {"name": "other"}, {"name": "other", "at": at("12:09:00"), "finished": 90}
    )

    assert (rows[DT, "*"].per_second_peak, rows[DT, "*"].peak_at) == (2.0, at("12:00:00"))
    assert rows[DT, "other"].per_second_peak == 1.5


def test_the_storage_lasts_for_days_while_no_worker_consumes(spark):
    samples = (
        {"at": at("01:00:00"), "sent_total": 500, "done_total": 460},
        {
            "at": at("23:00:00"),
            "sent_total": 2_500,
            "done_total": 2_460,
            "ready": 30,
            "waiting": 10,
        },
    )

    rows = found(spark, {"backlog": 70}, samples=samples, storage_bytes=10_000_000)

    mail = rows[DT, "mail"]
    assert (mail.arrived, mail.backlog_peak, mail.backlog_end) == (2_000, 70, 40)
    assert mail.stored_peak == 70_000
    assert mail.days_offline == pytest.approx(10_000_000 / (2_000 * 1_000))
    assert mail.days_offline_at_peak == pytest.approx(10_000_000 / (86_400 * 1_000))


def test_messages_sent_before_the_first_sample_of_a_day_have_arrived_on_it(spark):
    next_dt = day_after(DT)
    samples = (
        {"at": at("12:00:00"), "sent_total": 70, "done_total": 60},
        {"at": at("12:01:00"), "sent_total": 70, "done_total": 60},
        {"at": at("01:00:00", next_dt), "sent_total": 100, "done_total": 90},
        {"at": at("01:01:00", next_dt), "sent_total": 101, "done_total": 91},
    )

    rows = found(spark, {}, {"dt": next_dt, "at": midnight(next_dt)}, samples=samples)

    assert {key: row.arrived for key, row in rows.items()} == {
        (DT, "mail"): 70,
        (DT, "*"): 70,
        (next_dt, "mail"): 31,
        (next_dt, "*"): 31,
    }


def test_without_a_storage_size_and_samples_the_columns_are_null(spark):
    mail = found(spark, {})[DT, "mail"]

    assert (mail.days_offline, mail.days_until_full, mail.arrived) == (None, None, None)
    assert (mail.growth_per_week, mail.backlog_growth) == (None, None)


def test_growth_is_the_trend_of_the_last_weeks_and_predicts_a_full_storage(spark):
    days = [day_after(DT, n) for n in range(3)]
    rows = found(
        spark,
        *(
            {
                "dt": dt,
                "at": midnight(dt),
                "finished": 100 + 10 * n,
                "bytes": 1_000 * (100 + 10 * n),
            }
            for n, dt in enumerate(days)
        ),
        samples=tuple({"at": at("23:00:00", dt), "ready": 50 * n} for n, dt in enumerate(days)),
        storage_bytes=1_000_000,
    )

    last = rows[days[-1], "mail"]
    assert last.growth_per_week == pytest.approx(10 * 7 / 110)
    assert last.backlog_growth == pytest.approx(50)
    assert last.days_until_full == pytest.approx((1_000_000 - 100 * 1_000) / (50 * 1_000))


def test_a_backlog_that_shrinks_never_fills_the_storage(spark):
    days = [DT, day_after(DT)]
    rows = found(
        spark,
        *({"dt": dt, "at": midnight(dt)} for dt in days),
        samples=tuple(
            {"at": at("23:00:00", dt), "ready": 90 - 50 * n} for n, dt in enumerate(days)
        ),
        storage_bytes=1_000_000,
    )

    assert rows[days[-1], "mail"].backlog_growth == pytest.approx(-50)
    assert rows[days[-1], "mail"].days_until_full is None


def test_a_queue_with_a_backlog_that_finished_nothing_has_no_ratios(spark):
    days = [DT, day_after(DT)]
    stuck = [
        {"dt": dt, "at": midnight(dt), "finished": 0, "attempts": 0, "bytes": 0, "backlog": 9}
        for dt in days
    ]

    rows = found(spark, *stuck, storage_bytes=1_000_000)

    last = rows[days[-1], "mail"]
    assert (last.messages, last.backlog_peak, last.per_second_peak) == (0, 9, 0.0)
    assert (last.peak_to_average, last.growth_per_week, last.payload) == (None, None, None)


def test_a_day_that_is_computed_alone_has_the_trend_of_all_days(spark):
    """Earlier days are then read from one row per queue."""
    minutes: list[dict[str, Any]] = [
        {"dt": day_after(DT, n), "at": at("12:00:00", day_after(DT, n)), "finished": 100 + 10 * n}
        for n in range(4)
    ]
    minutes += [
        one | {"name": "idle", "finished": 0, "backlog": 3 * (n % 2)}
        for n, one in enumerate(minutes)
    ]
    days = [one | {"grain": "day", "at": midnight(one["dt"])} for one in minutes]
    samples = [
        {"at": at("13:00:00", one["dt"]), "sent_total": 9, "ready": 9 - one["finished"] % 7}
        for one in minutes[:4]
    ]
    last = minutes[3]["dt"]
    frames = {
        "rollups": computed(spark, ROLLUPS, *({**MINUTE, **row} for row in minutes + days)),
        "backlog": frame(spark, BACKLOG, *samples),
    }

    every, alone = (
        conform(capacity(tables, PipelineSettings(storage_bytes=GIB)), CAPACITY)
        .where(f"dt = '{last}'")
        .orderBy("queue")
        .collect()
        for tables in (frames, TablesOfDays(frames, [last]))
    )

    assert alone == every
    assert [row["queue"] for row in alone] == ["*", "idle", "mail"]
    assert alone[2]["growth_per_week"] > 0
