"""Small files of the computed tables put together."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.domain.lake.layout import HISTORY
from penstock.pipeline.files.compaction import CompactedDay, compact
from penstock.pipeline.jobs.lifecycle import LIFECYCLE
from tests.pipeline.lake_driver import LakeDriver
from tests.pipeline.rows import DT, NEXT_DT, at, pairs


def files_of(bench: LakeDriver, table: str) -> list[Path]:
    return sorted(Path(bench.lake.tables_folder, table).glob("**/[!._]*.parquet"))


def test_small_files_become_one_and_nothing_is_computed_again(bench):
    bench.archive(HISTORY, {}, {}, {}, {"finished_at": at("09:00:00", NEXT_DT)})
    bench.run("lifecycle")
    rows = bench.spark.createDataFrame(bench.read("lifecycle").collect(), LIFECYCLE.schema)
    bench.lake.replace(LIFECYCLE, rows.where(f"dt = '{DT}'").repartition(3, "history_no"), [DT])
    before = len(files_of(bench, "lifecycle"))
    bench.run("rollups")
    runs = len(files_of(bench, "runs"))
    assert before > 2
    assert runs > 1

    done = compact(bench.lake, bench.runner(), now=bench.tick(), may_write=lambda: None)

    assert done == [
        CompactedDay("lifecycle", DT, before - 1, 1),
        CompactedDay(
            "runs", "", runs + 1, 1
        ),  # one more, for the jobs that have read the old files
    ]
    assert len(files_of(bench, "lifecycle")) == 2
    assert len(files_of(bench, "runs")) == 1
    assert pairs(bench.read("lifecycle"), "history_no", "dt") == pairs(rows, "history_no", "dt")
    assert bench.ran("rollups") == []
    assert compact(bench.lake, bench.runner(), now=bench.tick(), may_write=lambda: None) == []


def test_a_run_whose_lock_was_lost_changes_nothing(bench):
    bench.archive(HISTORY, {})
    bench.run("quality", "lifecycle")
    before = files_of(bench, "runs")

    def lost() -> None:
        raise RuntimeError("lost")

    with pytest.raises(RuntimeError):
        compact(bench.lake, bench.runner(), now=bench.tick(), may_write=lost)

    assert files_of(bench, "runs") == before
