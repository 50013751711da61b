"""Computed tables, and tables of the lake, that have a Delta log."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from penstock.domain.lake.layout import HISTORY
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.files.delta_log import DeltaLog
from penstock.files.folder import open_folder
from penstock.outbound.lake_files import LakeFiles
from penstock.pipeline.files import delta_tables
from penstock.pipeline.jobs.lifecycle import JOB, LIFECYCLE
from penstock.pipeline.lake import SparkLake
from tests.pipeline.lake_driver import LakeDriver
from tests.pipeline.rows import DT, NEXT_DT, at, pairs


@pytest.fixture
def driver(spark, tmp_path) -> LakeDriver:
    driver = LakeDriver(spark, tmp_path / "lake")
    driver.lake = SparkLake(spark, str(tmp_path / "lake"), is_delta=True)
    return driver


def compute(driver: LakeDriver, *days: str) -> None:
    rows = JOB.outputs[0].transform({"history": driver.read("history")}, PipelineSettings())
    driver.lake.replace(LIFECYCLE, rows, days)


def test_days_are_replaced_in_one_version_which_any_program_reads(driver):
    driver.archive(HISTORY, {}, {"finished_at": at("09:00:00", NEXT_DT)})
    compute(driver, DT, NEXT_DT)
    table = driver.folder / "derived" / "lifecycle"
    before, files = DeltaTable(table).version(), driver.lake.files("lifecycle")

    driver.archive(HISTORY, {"id": "late"})
    compute(driver, DT)

    ids = [(DT, "late"), (DT, "m-1"), (NEXT_DT, "m-1")]
    assert pairs(driver.read("lifecycle"), "dt", "id") == ids
    rows = DeltaTable(table).to_pyarrow_table()
    assert sorted(zip(*(rows[name].to_pylist() for name in ("dt", "id")), strict=True)) == ids
    assert DeltaTable(table).version() == before + 1
    assert DeltaTable(table, version=before).to_pyarrow_table().num_rows == 2
    now = driver.lake.files("lifecycle")
    assert (now[DT] != files[DT], now[NEXT_DT] == files[NEXT_DT]) == (True, True)


def test_a_reader_keeps_its_version_while_another_run_replaces_the_day(driver):
    driver.archive(HISTORY, {"id": "old"})
    compute(driver, DT)
    reading = driver.read("lifecycle")
    other = LakeDriver(driver.spark, driver.folder)  # its setting is parquet; the table stays Delta

    other.archive(HISTORY, {"id": "late"})
    compute(other, DT)

    assert pairs(reading, "id") == [("old",)]
    assert pairs(other.read("lifecycle"), "id") == [("late",)]


def test_a_plain_table_keeps_its_other_days_when_it_becomes_a_delta_table(driver, monkeypatch):
    monkeypatch.setattr(delta_tables, "_LISTED_APART", 0)  # as when many days are replaced
    driver.archive(HISTORY, {"id": "a"}, {"id": "b", "finished_at": at("09:00:00", NEXT_DT)})
    plain = LakeDriver(driver.spark, driver.folder)
    compute(plain, DT, NEXT_DT)

    compute(driver, DT)
    assert pairs(driver.read("lifecycle"), "dt", "id") == [(DT, "a"), (NEXT_DT, "b")]

    nothing = driver.read("lifecycle").limit(0)
    driver.lake.replace(LIFECYCLE, nothing, [DT])
    assert pairs(driver.read("lifecycle"), "dt", "id") == [(NEXT_DT, "b")]


def test_spark_reads_the_files_of_the_lakes_logs_only(driver):
    driver.archive(HISTORY, {"id": "a"})
    LakeFiles(open_folder(str(driver.folder), str), is_delta=True)._log(HISTORY)
    driver.lake.refresh()

    driver.archive(HISTORY, {"id": "not committed"})

    assert pairs(driver.read("history"), "id") == [("a",)]
    assert [files.count for files in driver.lake.files("history").values()] == [1]
    assert len(DeltaLog(str(driver.folder / "history")).files()) == 1
