"""Real `penstock pipeline run` processes: at once on one lake, and repeated by --every."""

from __future__ import annotations

import json
import os
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from penstock.domain.lake.layout import HISTORY
from penstock.edge.cli.pipeline.spark_command import lock_tables
from penstock.pipeline.files.lock_files import NAME
from tests.pipeline.lake_driver import LakeDriver
from tests.pipeline.process import PATIENCE_S, SMALL, penstock, run, started
from tests.pipeline.rows import DT
from tests.support.waiting import eventually


def test_a_run_with_wait_waits_and_one_without_names_the_running_one(
    driver: LakeDriver, tmp_path: Path
):
    driver.archive(HISTORY, {})
    [damaged] = (driver.folder / "history" / f"dt={DT}").glob("*.parquet")
    damaged.write_bytes(b"PAR1" + b"?" * 500 + b"PAR1")
    command = penstock("pipeline", "run", "quality", "--lake", driver.folder, *SMALL)
    log = (tmp_path / "first.log").open("w+")

    with log, ExitStack() as this_run:
        this_run.enter_context(lock_tables(driver.lake, waits=False))
        with started([*command, "--wait"], log) as first:
            eventually(lambda: "waiting for" in _text(log.name), within_s=PATIENCE_S)
            this_run.close()
            eventually(lambda: _is_held(driver, first.pid), within_s=PATIENCE_S)
            first.send_signal(signal.SIGSTOP)  # it keeps the lock while the second one looks
            second = run(command)
            first.send_signal(signal.SIGCONT)
            assert first.wait(PATIENCE_S) == 1

    waiting, *lines = [line for line in _text(log.name).splitlines() if "penstock: " in line]
    assert f"(process {os.getpid()}), since " in waiting
    assert lines == [
        "penstock: quality: 1 day",
        f"penstock: {DT}: cannot read history/dt={DT}/{damaged.name}: it is damaged; "
        "replace the file and run again (load_refused)",
    ]
    assert second.returncode == 1
    [line] = second.stderr.splitlines()
    assert line.startswith("penstock: another run is using these tables: ")
    assert f"(process {first.pid}), since " in line
    assert line.endswith("; use --wait to wait for it (lake_busy)")


def _is_held(driver: LakeDriver, pid: int) -> bool:
    path = driver.folder / "derived" / NAME
    return path.exists() and f'"pid":{pid},' in path.read_text()


@pytest.mark.slow
def test_repeated_runs_compute_the_lake_until_sigterm(driver: LakeDriver, tmp_path: Path):
    driver.archive(HISTORY, {})
    summary = tmp_path / "summary.json"
    command = penstock(
        "pipeline", "run", "quality", "--every", "1h", "--lake", driver.folder,
        "--summary", summary, *SMALL,
    )  # fmt: skip

    with (tmp_path / "log").open("w+") as log, started(command, log) as process:
        eventually(summary.exists, within_s=PATIENCE_S)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0, _text(log.name)

    found = json.loads(summary.read_text())
    assert (found["status"], found["jobs"][0]["computed"]) == ("done", 1)
    assert driver.ran("quality") == []


def _text(path: str) -> str:
    return Path(path).read_text()
