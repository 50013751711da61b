"""`penstock pipeline` in processes of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from penstock.edge.cli.pipeline import submit
from tests.edge.process import ROOT
from tests.pipeline.conftest import INTERPRETED
from tests.support.spark_cache import java_options

PATIENCE_S = 560
# The session of these tests has left its own traces in the environment.
_TRACES = (
    "PYSPARK_GATEWAY_PORT",
    "PYSPARK_GATEWAY_SECRET",
    "SPARK_CONNECT_MODE_ENABLED",
    "SPARK_SUBMIT_OPTS",
)
SMALL = (
    "--master", "local[1]",
    "--conf", "spark.driver.memory=1g",
    "--conf", "spark.sql.shuffle.partitions=2",
    "--conf", f"spark.driver.extraJavaOptions={java_options()}",
    *(word for name, value in INTERPRETED.items() for word in ("--conf", f"{name}={value}")),
)  # fmt: skip


def penstock(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "penstock", *map(str, arguments)]


def spark_submit(*arguments: object) -> list[str]:
    program = Path(sys.executable).with_name("spark-submit")
    assert program.exists(), "pip has put spark-submit elsewhere"
    return [
        str(program), "--master", "local[1]", "--driver-memory", "1g",
        "--driver-java-options", java_options(), "--conf", "spark.ui.enabled=false",
        "--conf", "spark.sql.shuffle.partitions=2", submit.__file__, *map(str, arguments),
    ]  # fmt: skip


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=environ_of_process(), capture_output=True, text=True, timeout=PATIENCE_S
    )


@contextmanager
def started(command: list[str], output: TextIO) -> Iterator[subprocess.Popen[bytes]]:
    """Killed in the end, with its Java."""
    process = subprocess.Popen(
        command,
        env=environ_of_process(),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


def environ_of_process() -> dict[str, str]:
    plain = {name: text for name, text in os.environ.items() if name not in _TRACES}
    paths = filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH")))
    return plain | {
        "PYTHONPATH": os.pathsep.join(paths),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
