"""Small files of the computed tables put together."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from penstock.domain.lake.layout import HISTORY
from penstock.pipeline import runs
from penstock.pipeline.files.compaction import CompactedDay, compact
from penstock.pipeline.lake import SparkLake
from penstock.pipeline.schemas import ComputedTable
from tests.pipeline.lake_driver import LakeDriver
from tests.pipeline.rows import DT, NEXT_DT, at


def files_of(driver: LakeDriver, table: str) -> list[Path]:
    return sorted(Path(driver.lake.tables_folder, table).glob("**/[!._]*.parquet"))


def archive_in_small_files(driver: LakeDriver) -> None:
    """Spark writes as many files of lifecycle as it reads."""
    driver.archive(HISTORY, {}, {"finished_at": at("09:00:00", NEXT_DT)})
    driver.archive(HISTORY, {})
    driver.archive(HISTORY, {})


def test_small_files_become_one_and_nothing_is_computed_again(driver):
    archive_in_small_files(driver)
    driver.run("rollups")
    rows = driver.read("lifecycle").collect()
    before = len(files_of(driver, "lifecycle"))
    run_files = len(files_of(driver, "runs"))
    assert before > 2
    assert run_files > 1

    done = compact(driver.lake, driver.runner(), now=driver.tick(), may_write=lambda: None)

    assert done == [
        CompactedDay("lifecycle", DT, before - 1, 1),
        CompactedDay(
            "runs", "", run_files + 1, 1
        ),  # one more, for the jobs that have read the old files
    ]
    assert len(files_of(driver, "lifecycle")) == 2
    assert len(files_of(driver, "runs")) == 1
    assert sorted(driver.read("lifecycle").collect()) == sorted(rows)
    assert driver.ran("rollups") == []
    assert compact(driver.lake, driver.runner(), now=driver.tick(), may_write=lambda: None) == []


def test_a_day_that_a_killed_compaction_has_lost_is_computed_again(driver, monkeypatch):
    archive_in_small_files(driver)
    driver.run("rollups")
    rows = driver.read("lifecycle").collect()

    def killed(lake: SparkLake, rows: object, table: ComputedTable) -> None:
        """Spark has deleted the old files, and the new ones have no names yet."""
        shutil.rmtree(Path(lake.tables_folder, table.name, f"dt={DT}"))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(SparkLake, "_write", killed)
        with pytest.raises(KeyboardInterrupt):
            compact(driver.lake, driver.runner(), now=driver.tick(), may_write=lambda: None)

    assert driver.ran("rollups") == [("lifecycle", DT), ("rollups", DT)]
    assert sorted(driver.read("lifecycle").collect()) == sorted(rows)


def test_a_run_merges_the_files_of_the_log_of_runs_before_there_are_many(driver, monkeypatch):
    monkeypatch.setattr(runs, "MOST_FILES", 2)
    driver.archive(HISTORY, {})
    driver.run("quality")
    driver.run("quality", is_forced=True)
    before = driver.runs()
    assert len(files_of(driver, "runs")) == len(before) == 2

    [last] = driver.run("quality", is_forced=True)

    assert len(files_of(driver, "runs")) == 1
    assert driver.runs() == [*before, last]


def test_a_run_whose_lock_was_lost_changes_nothing(driver):
    driver.archive(HISTORY, {})
    driver.run("quality", "lifecycle")
    before = files_of(driver, "runs")

    def lost() -> None:
        raise RuntimeError("lost")

    with pytest.raises(RuntimeError):
        compact(driver.lake, driver.runner(), now=driver.tick(), may_write=lost)

    assert files_of(driver, "runs") == before
