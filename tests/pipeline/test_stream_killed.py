"""A stream in its own process, killed at its weakest points: every row is counted once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.testing import assertDataFrameEqual

from penstock.domain.lake.layout import BACKLOG, HISTORY
from penstock.pipeline.lake import SparkLake
from tests.edge.process import ROOT
from tests.pipeline.lake_driver import LakeDriver
from tests.pipeline.rows import NOON
from tests.support.waiting import eventually

PATIENCE_S = 400


class Streaming:
    def __init__(self, lake: Path, derived: Path) -> None:
        self.lake, self.tables_folder = lake, derived
        self.log = derived.with_name("stream.log")

    @contextmanager
    def run(self, *more: str) -> Iterator[subprocess.Popen[bytes]]:
        command = [
            "pipeline",
            "stream",
            "--lake",
            str(self.lake),
            "--derived",
            str(self.tables_folder),
        ]
        small = ["--master", "local[2]", "--conf", "spark.driver.memory=1g"]
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "penstock", *command, *small, *more],
                cwd=self.lake.parent,
                env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Java is a child: it goes with it
            )
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)

    def killed_when(self, sign: str) -> None:
        """Started, and killed without a warning as soon as such a file is there."""
        with self.run("--every", "1s") as process:
            eventually(lambda: self._shows(sign, process), within_s=PATIENCE_S)

    def _shows(self, sign: str, process: subprocess.Popen[bytes]) -> bool:
        assert process.poll() is None, self.log.read_text()
        return any(self.tables_folder.glob(sign))


def messages(count: int, start: int) -> list[dict[str, object]]:
    return [{"finished_at": NOON + 1_000 * (start + n), "route": "/a"} for n in range(count)]


@pytest.mark.timeout(1500)
def test_a_stream_killed_before_and_after_it_has_written_counts_everything_once(
    bench: LakeDriver, tmp_path: Path
):
    streaming = Streaming(bench.folder, tmp_path / "fresh")
    bench.archive(HISTORY, *messages(30, 0))
    bench.archive(BACKLOG, {"ready": 5, "sent_total": 5})

    # What the batch adds is kept, and the rollups are not made of it yet.
    streaming.killed_when("stream/lake/kept/batch=0/_SUCCESS")
    bench.archive(HISTORY, *messages(20, 50))
    # The rollups are made, and Spark has not noted yet that the batch is through.
    streaming.killed_when("rollups/dt=*/*.parquet")
    bench.archive(HISTORY, *messages(7, 90))
    with streaming.run("--once") as process:
        assert process.wait(PATIENCE_S) == 0, streaming.log.read_text()

    bench.run("rollups")
    fresh = SparkLake(bench.spark, str(bench.folder), tables_folder=str(streaming.tables_folder))
    assertDataFrameEqual(fresh.read("rollups"), bench.read("rollups"))
    whole = fresh.read("rollups").where("grain = 'day' AND dimension = 'queue'")
    assert [(row.finished, row.backlog) for row in whole.collect()] == [(57, 5)]
