"""What a command leaves on a terminal: our own lines, and none of Spark's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from penstock.domain.lake.layout import HISTORY
from penstock.edge.cli.pipeline import submit
from tests.edge.process import ROOT
from tests.pipeline.lake_driver import LakeDriver
from tests.pipeline.rows import DT

PATIENCE_S = 280
# The session of these tests has left its own traces in the environment.
_TRACES = (
    "PYSPARK_GATEWAY_PORT",
    "PYSPARK_GATEWAY_SECRET",
    "SPARK_CONNECT_MODE_ENABLED",
    "SPARK_SUBMIT_OPTS",
)


def run(*words: object, **env: str) -> subprocess.CompletedProcess[str]:
    plain = {name: text for name, text in os.environ.items() if name not in _TRACES}
    paths = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
    return subprocess.run(
        [str(word) for word in words],
        env={**plain, "PYTHONPATH": paths, **env},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


def a_damaged_lake(bench: LakeDriver) -> list[str]:
    """One day whose only file is damaged; returns the lines that a run of `quality` prints."""
    bench.archive(HISTORY, {})
    [damaged] = (bench.folder / "history" / f"dt={DT}").glob("*.parquet")
    damaged.write_bytes(b"PAR1" + b"?" * 500 + b"PAR1")
    return [
        "penstock: quality: 1 day",
        f"penstock: {DT}: cannot read history/dt={DT}/{damaged.name}: it is damaged; "
        "replace the file and run again (load_refused)",
    ]


def test_a_run_that_fails_in_spark_prints_only_our_own_lines(bench):
    expected = a_damaged_lake(bench)

    ran = run(
        sys.executable, "-m", "penstock", "pipeline", "run", "quality", "--lake", bench.folder,
        "--master", "local[1]", "--conf", "spark.driver.memory=1g", "--json",
    )  # fmt: skip

    assert (ran.returncode, ran.stderr.splitlines()) == (1, expected)


def test_spark_submit_shows_no_log_of_the_run(bench):
    expected = a_damaged_lake(bench)
    program = Path(sys.executable).with_name("spark-submit")

    ran = run(
        program, "--master", "local[1]", "--driver-memory", "1g",
        "--conf", "spark.ui.enabled=false", submit.__file__,
        "pipeline", "run", "quality", "--lake", bench.folder, "--json",
        PYSPARK_PYTHON=sys.executable, PYSPARK_DRIVER_PYTHON=sys.executable,
    )  # fmt: skip

    # spark-submit writes what Python prints on both streams to its standard output.
    lines = [*ran.stdout.splitlines(), *ran.stderr.splitlines()]
    assert [line for line in lines if line.startswith("penstock: ")] == expected
    assert [line for line in lines if " INFO " in line or " ERROR " in line] == []
