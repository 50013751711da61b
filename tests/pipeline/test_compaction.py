"""Small files of the computed tables put together."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from penstock.domain.lake.layout import HISTORY
from penstock.pipeline import runs
from penstock.pipeline.files.compaction import CompactedDay, compact
from penstock.pipeline.lake import SparkLake
from tests.pipeline.lake_driver import LakeDriver
from tests.pipeline.rows import DT, NEXT_DT, at


def files_of(bench: LakeDriver, table: str) -> list[Path]:
    return sorted(Path(bench.lake.tables_folder, table).glob("**/[!._]*.parquet"))


def archive_in_small_files(bench: LakeDriver) -> None:
    """Spark writes as many files of lifecycle as it reads."""
    bench.archive(HISTORY, {}, {"finished_at": at("09:00:00", NEXT_DT)})
    bench.archive(HISTORY, {})
    bench.archive(HISTORY, {})


def test_small_files_become_one_and_nothing_is_computed_again(bench):
    archive_in_small_files(bench)
    bench.run("rollups")
    rows = bench.read("lifecycle").collect()
    before = len(files_of(bench, "lifecycle"))
    run_files = len(files_of(bench, "runs"))
    assert before > 2
    assert run_files > 1

    done = compact(bench.lake, bench.runner(), now=bench.tick(), may_write=lambda: None)

    assert done == [
        CompactedDay("lifecycle", DT, before - 1, 1),
        CompactedDay(
            "runs", "", run_files + 1, 1
        ),  # one more, for the jobs that have read the old files
    ]
    assert len(files_of(bench, "lifecycle")) == 2
    assert len(files_of(bench, "runs")) == 1
    assert sorted(bench.read("lifecycle").collect()) == sorted(rows)
    assert bench.ran("rollups") == []
    assert compact(bench.lake, bench.runner(), now=bench.tick(), may_write=lambda: None) == []


def test_a_day_that_a_killed_compaction_has_lost_is_computed_again(bench, monkeypatch):
    archive_in_small_files(bench)
    bench.run("rollups")
    rows = bench.read("lifecycle").collect()

    def killed(lake: SparkLake, rows: object, table: str) -> None:
        """Spark has deleted the old files, and the new ones have no names yet."""
        shutil.rmtree(Path(lake.tables_folder, table, f"dt={DT}"))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(SparkLake, "_write", killed)
        with pytest.raises(KeyboardInterrupt):
            compact(bench.lake, bench.runner(), now=bench.tick(), may_write=lambda: None)

    assert bench.ran("rollups") == [("lifecycle", DT), ("rollups", DT)]
    assert sorted(bench.read("lifecycle").collect()) == sorted(rows)


def test_a_run_merges_the_files_of_the_log_of_runs_before_there_are_many(bench, monkeypatch):
    monkeypatch.setattr(runs, "MOST_FILES", 2)
    bench.archive(HISTORY, {})
    bench.run("quality")
    bench.run("quality", is_forced=True)
    before = bench.runs()
    assert len(files_of(bench, "runs")) == len(before) == 2

    [last] = bench.run("quality", is_forced=True)

    assert len(files_of(bench, "runs")) == 1
    assert bench.runs() == [*before, last]


def test_a_run_whose_lock_was_lost_changes_nothing(bench):
    bench.archive(HISTORY, {})
    bench.run("quality", "lifecycle")
    before = files_of(bench, "runs")

    def lost() -> None:
        raise RuntimeError("lost")

    with pytest.raises(RuntimeError):
        compact(bench.lake, bench.runner(), now=bench.tick(), may_write=lost)

    assert files_of(bench, "runs") == before
