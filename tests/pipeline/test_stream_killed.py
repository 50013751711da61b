"""A stream that is killed at its weakest points counts every row once."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import NoReturn

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.testing import assertDataFrameEqual

from penstock.domain.lake.layout import BACKLOG, HISTORY
from penstock.pipeline import streaming
from penstock.pipeline.files.lock_files import NAME, STREAM
from penstock.pipeline.lake import SparkLake
from penstock.pipeline.streaming import lake_stream, start
from tests.pipeline import killed_stream
from tests.pipeline.killed_stream import STEPS
from tests.pipeline.lake_driver import LakeDriver
from tests.pipeline.process import PATIENCE_S, SMALL, penstock, started
from tests.pipeline.rows import NOON
from tests.support.waiting import eventually


def messages(count: int, start: int) -> list[dict[str, object]]:
    return [{"finished_at": NOON + 1_000 * (start + n), "route": "/a"} for n in range(count)]


def run_killed(lake: SparkLake, *, when: str, log: Path) -> None:
    """A process of its own, killed without a warning as soon as such a file exists."""
    command = penstock(
        "pipeline", "stream", "--lake", lake.folder, "--tables", lake.tables_folder,
        "--every", "1s", *SMALL,
    )  # fmt: skip
    with log.open("w") as output, started(command, output) as process:

        def is_there() -> bool:
            assert process.poll() is None, log.read_text()
            return any(Path(lake.tables_folder).glob(when))

        eventually(is_there, within_s=PATIENCE_S)


def run_here(lake: SparkLake, *, most_files: int = 9) -> None:
    tables = (
        lake_stream(lake.spark, lake.folder, t, most_files=most_files) for t in streaming.TABLES
    )
    assert start(lake, *tables, every_s=None).awaitTermination(PATIENCE_S)


def test_a_stream_killed_before_and_after_it_has_written_counts_everything_once(
    driver: LakeDriver, tmp_path: Path, monkeypatch
):
    fresh = SparkLake(driver.spark, str(driver.folder), tables_folder=str(tmp_path / "fresh"))
    driver.archive(HISTORY, *messages(30, 0))
    driver.archive(BACKLOG, {"ready": 5, "sent_total": 5})

    # The sums of the batch are stored, and the rollups do not have them yet.
    run_killed(fresh, when="stream/lake-*/kept/batch=0/_SUCCESS", log=tmp_path / "stream.log")
    driver.archive(HISTORY, *messages(20, 50))
    # The rollups have them, and Spark has not recorded yet that the batch is complete.
    with monkeypatch.context() as patch:
        patch.setattr(SparkLake, "replace", replace_and_end(SparkLake.replace))
        with pytest.raises(StreamingQueryException):
            run_here(fresh)
    driver.archive(HISTORY, *messages(7, 90))
    run_here(fresh)

    driver.run("rollups")
    assertDataFrameEqual(fresh.read("rollups"), driver.read("rollups"))
    whole = fresh.read("rollups").where("grain = 'day' AND dimension = 'queue'")
    assert [(row.finished, row.backlog) for row in whole.collect()] == [(57, 5)]


def test_a_stream_that_dies_at_any_step_of_a_fold_or_a_swap_counts_everything_once(
    driver: LakeDriver, tmp_path: Path, monkeypatch
):
    fresh = SparkLake(driver.spark, str(driver.folder), tables_folder=str(tmp_path / "fresh"))
    start = 0
    for step in STEPS:
        for _ in range(3):  # files: each becomes a batch, and one of two batches folds
            driver.archive(HISTORY, *messages(3, start))
            start += 3
        # Nothing runs after these steps that could mend or spoil files, so one real kill is enough.
        if step == "in the swap":
            assert kill_at(step, fresh, log=tmp_path / "stream.log") == -signal.SIGKILL
            continue
        with monkeypatch.context() as patch:
            killed_stream.arm(step, end, patch.setattr)
            with pytest.raises(StreamingQueryException):
                run_here(fresh, most_files=1)
    monkeypatch.setattr(streaming, "FOLD", killed_stream.FOLD)
    run_here(fresh)

    driver.run("rollups")
    assertDataFrameEqual(fresh.read("rollups"), driver.read("rollups"))
    whole = fresh.read("rollups").where("grain = 'day' AND dimension = 'queue'")
    assert [row.finished for row in whole.collect()] == [start]


def kill_at(step: str, lake: SparkLake, *, log: Path) -> int:
    """Returns the exit status of the process."""
    command = [
        sys.executable, killed_stream.__file__, step,
        "pipeline", "stream", "--lake", lake.folder, "--tables", lake.tables_folder,
        "--once", *SMALL,
    ]  # fmt: skip
    with log.open("w") as output, started(command, output) as process:
        status = process.wait(PATIENCE_S)
    for lock in (STREAM, NAME):  # as after the two minutes in which they expire
        Path(lake.tables_folder, lock).unlink(missing_ok=True)
    return status


def replace_and_end(replace):
    def run_and_end(*args):
        replace(*args)
        end()

    return run_and_end


def end() -> NoReturn:
    raise RuntimeError("the end")
