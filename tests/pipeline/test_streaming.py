"""Streamed rollups equal those that a run over all rows computes."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.testing import assertDataFrameEqual

from penstock.domain.lake.layout import BACKLOG, HISTORY
from penstock.pipeline import streaming
from penstock.pipeline.lake import SparkLake
from penstock.pipeline.streaming import batch_adder, feed, lake_stream, start
from tests.pipeline.rows import DT, NEXT_DT, NOON, at, day_after, frame, pairs


@pytest.fixture
def fresh(driver):
    """What the stream derives, apart from what the jobs derive."""
    return SparkLake(driver.spark, driver.lake.folder, tables_folder=f"{driver.lake.folder}-fresh")


def caught_up(driver, fresh):
    """Add what is there, and end."""
    tables = (
        lake_stream(driver.spark, fresh.folder, table, most_files=1) for table in streaming.TABLES
    )
    query = start(fresh, *tables, every_s=None)
    assert query.awaitTermination(400)
    return query


def totals(lake):
    return pairs(
        lake.read("rollups").where("dimension = 'queue' AND grain = 'day'"),
        "dt", "name", "finished", "backlog",
    )  # fmt: skip


@pytest.mark.timeout(900)  # several streams, one after the other
def test_files_added_one_by_one_give_the_same_rollups_as_one_run(driver, fresh):
    driver.archive(HISTORY, {"kind": "a", "route": "/a"}, {"finished_at": NOON + 1, "failures": 2})
    driver.archive(
        BACKLOG,
        {"ready": 5, "sent_total": 5},
        {"ready": 9, "sent_total": 9, "at": at("23:59:00")},
    )
    caught_up(driver, fresh)
    assert totals(fresh) == [("2026-01-01", "mail", 2, 9)]

    driver.archive(HISTORY, {"outcome": "dead"}, {"finished_at": at("00:00:00", NEXT_DT)})
    caught_up(driver, fresh)
    caught_up(driver, fresh)  # nothing is new

    driver.run("rollups")
    assertDataFrameEqual(fresh.read("rollups"), driver.read("rollups"))
    assert totals(fresh) == [("2026-01-01", "mail", 3, 9), ("2026-01-02", "mail", 1, None)]


def test_a_repeated_batch_counts_once(driver, fresh):
    add = batch_adder(fresh.folder, fresh.tables_folder, f"{fresh.tables_folder}/stream/test")
    none = frame(driver.spark, BACKLOG)
    one = feed(frame(driver.spark, HISTORY, {}, {}), none)
    other = feed(frame(driver.spark, HISTORY, {}), none)

    add(one, 0)
    add(other, 1)
    add(other, 1)

    assert totals(fresh) == [("2026-01-01", "mail", 3, None)]


def test_sums_of_an_earlier_checkpoint_do_not_count(driver, fresh):
    add = batch_adder(fresh.folder, fresh.tables_folder, f"{fresh.tables_folder}/stream/test")
    one = feed(frame(driver.spark, HISTORY, {}, {}), frame(driver.spark, BACKLOG))
    for number in (0, 1):
        add(one, number)

    add(one, 0)  # the checkpoint was thrown away

    assert totals(fresh) == [("2026-01-01", "mail", 2, None)]


def test_a_day_whose_file_was_corrected_is_computed_from_the_lake_from_then_on(
    driver, fresh, monkeypatch
):
    monkeypatch.setattr(streaming, "FOLD", 2)
    add = batch_adder(fresh.folder, fresh.tables_folder, f"{fresh.tables_folder}/stream/test")
    none = frame(driver.spark, BACKLOG)

    def added(number: int) -> None:
        driver.archive(HISTORY, {})
        add(feed(frame(driver.spark, HISTORY, {}), none), number)

    added(0)
    added(1)
    wrong, _ = sorted((driver.folder / "history" / f"dt={DT}").glob("*.parquet"))
    rows = pq.ParquetFile(wrong).read()
    pq.write_table(pa.concat_tables([rows, rows, rows]), wrong)

    for number, finished in ((2, 5), (3, 6), (4, 7)):  # the sums of the first batches are merged
        added(number)
        assert totals(fresh) == [(DT, "mail", finished, None)]


def test_a_run_computes_a_day_again_that_a_stream_has_replaced(driver):
    driver.archive(HISTORY, {}, {})
    driver.run("rollups")
    add = batch_adder(driver.lake.folder, driver.lake.tables_folder, f"{driver.folder}/stream")

    add(feed(frame(driver.spark, HISTORY, {}), frame(driver.spark, BACKLOG)), 0)

    assert totals(driver.lake) == [(DT, "mail", 1, None)], "its checkpoint was thrown away"
    assert driver.ran("rollups") == [("rollups", DT)]
    assert totals(driver.lake) == [(DT, "mail", 2, None)]


def test_a_stream_without_runs_deletes_files_that_no_version_needs(driver, fresh, monkeypatch):
    monkeypatch.setattr(streaming, "FOLD", 1)
    folder = f"{fresh.tables_folder}/stream/test"
    add = batch_adder(fresh.folder, fresh.tables_folder, folder, is_delta=True)
    batch = feed(frame(driver.spark, HISTORY, {}), frame(driver.spark, BACKLOG))
    add(batch, 0)
    left = Path(fresh.tables_folder, "rollups", f"dt={DT}", "left-by-a-killed-writer.parquet")
    left.touch()
    os.utime(left, (0, 0))

    add(batch, 1)

    assert not left.exists()
    assert totals(fresh) == [(DT, "mail", 2, None)]


def test_sums_are_added_up_after_some_batches_and_kept_for_the_latest_days_only(
    driver, fresh, monkeypatch
):
    monkeypatch.setattr(streaming, "FOLD", 2)
    monkeypatch.setattr(streaming, "DAYS", 2)
    folder = Path(f"{fresh.tables_folder}/stream/test")
    add = batch_adder(fresh.folder, fresh.tables_folder, str(folder))
    days = [day_after(DT, number) for number in range(4)]

    def added(number: int, day: str, *, times: int = 1) -> None:
        ending = {"finished_at": at("12:00:00", day), "message_no": number, "route": f"/{number}"}
        driver.archive(HISTORY, ending)
        batch = feed(frame(driver.spark, HISTORY, ending), frame(driver.spark, BACKLOG))
        for _ in range(times):
            add(batch, number)

    added(0, days[0])
    added(1, days[1])
    added(2, days[2], times=2)  # the sums of the first day are dropped
    added(3, days[0])  # late: the day is computed from the lake
    added(4, days[3], times=2)
    added(5, days[2])

    driver.run("rollups")
    assertDataFrameEqual(fresh.read("rollups"), driver.read("rollups"))
    assert [finished for _, _, finished, _ in totals(fresh)] == [2, 1, 2, 1]
    kept = {place.name for place in (folder / "kept").iterdir()}
    assert kept == {"batch=0", "batch=1", "batch=2", "batch=3", "folded=0", "folded=1"}
    assert sorted(place.name for place in (folder / "kept" / "folded=0").glob("dt=*")) == [
        f"dt={day}" for day in days[2:]
    ]
