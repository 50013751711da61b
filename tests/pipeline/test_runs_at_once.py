"""Real `penstock pipeline run` processes at once on one lake, and what they leave on a terminal."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from pathlib import Path

from penstock.domain.lake.layout import HISTORY
from penstock.edge.cli.pipeline.shared import locked
from penstock.pipeline.files.lock_files import NAME
from tests.pipeline.lake_driver import LakeDriver
from tests.pipeline.process import PATIENCE_S, SMALL, penstock, run, started
from tests.pipeline.rows import DT
from tests.support.waiting import eventually


def test_a_run_that_may_wait_waits_and_another_learns_who_is_at_work(
    bench: LakeDriver, tmp_path: Path
):
    bench.archive(HISTORY, {})
    [damaged] = (bench.folder / "history" / f"dt={DT}").glob("*.parquet")
    damaged.write_bytes(b"PAR1" + b"?" * 500 + b"PAR1")
    command = penstock("pipeline", "run", "quality", "--lake", bench.folder, *SMALL)
    log = (tmp_path / "first.log").open("w+")

    with log, ExitStack() as this_run:
        this_run.enter_context(locked(bench.lake, waits=False))
        with started([*command, "--wait"], log) as first:
            eventually(lambda: "waiting for" in _text(log.name), within_s=PATIENCE_S)
            this_run.close()
            eventually(lambda: _is_held(bench, first.pid), within_s=PATIENCE_S)
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


def _is_held(bench: LakeDriver, pid: int) -> bool:
    path = bench.folder / "derived" / NAME
    return path.exists() and f'"pid":{pid},' in path.read_text()


def _text(path: str) -> str:
    return Path(path).read_text()
