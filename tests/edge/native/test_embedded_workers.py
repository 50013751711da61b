"""Workers inside the server."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from penstock import Penstock
from penstock.edge.serving.embedded_workers import processes_of
from penstock.settings.workers import WorkersSettings
from tests.edge.cli.workers import application
from tests.edge.cli.workers.driver import APP
from tests.edge.process import ServerProcess
from tests.support.waiting import eventually

PATIENCE_S = 30.0


def test_the_server_runs_the_modules_that_its_settings_name_and_those_that_die_are_started_again(
    make_process, tmp_path
):
    server: ServerProcess = make_process(workers_modules=APP, workers_embedded=1)
    seen = tmp_path / "seen"
    with Penstock(server.url) as client:
        _send(client, seen, "first")
        eventually(lambda: _lines(seen) == ["first"], within_s=PATIENCE_S)
        [child] = _children(server.pid)

        os.kill(child, signal.SIGKILL)
        eventually(lambda: _children(server.pid) not in ([], [child]), within_s=PATIENCE_S)
        _send(client, seen, "second")

        eventually(lambda: "second" in _lines(seen), within_s=PATIENCE_S)

    log = server.log.read_text()
    assert f"INFO    {server.pid} penstock.workers: workers are ready: {APP}" in log
    assert f"ERROR   {server.pid} penstock.worker: worker process {child} exited:" in log


def test_the_writer_of_a_server_of_several_processes_runs_the_modules(make_process, tmp_path):
    server = make_process(server_processes=2, workers_modules=APP, workers_embedded=1)
    seen = tmp_path / "seen"
    with Penstock(server.url) as client:
        _send(client, seen, "first")
        eventually(lambda: _lines(seen) == ["first"], within_s=PATIENCE_S)

    assert server.end() == 0, server.log_tail()


def test_a_process_inside_the_server_is_replaced_at_the_limit_of_the_settings(
    make_process, tmp_path
):
    limits = {"workers_max_jobs": 1, "workers_max_memory_bytes": "10GiB"}
    server: ServerProcess = make_process(workers_modules=APP, workers_embedded=1, **limits)
    seen = tmp_path / "seen"
    with Penstock(server.url) as client:
        for text in ("first", "second"):
            _send(client, seen, text)
        eventually(lambda: _lines(seen) == ["first", "second"], within_s=PATIENCE_S)

    log = server.log.read_text()
    assert "replacing this process: jobs finished: 1" in log
    assert "exited:" not in log


@pytest.mark.parametrize("settings", [{"workers_modules": APP, "workers_embedded": 0}, {}])
def test_with_no_modules_or_none_embedded_nothing_is_started(make_process, settings):
    server: ServerProcess = make_process(**settings)

    assert _children(server.pid) == []


@pytest.mark.parametrize(
    ("embedded", "cores", "processes"),
    [(None, 1, 1), (None, 4, 1), (None, 8, 2), (None, 64, 16), (3, 1, 3), (0, 64, 0)],
)
def test_by_default_a_quarter_of_the_cores_work_and_at_least_one(embedded, cores, processes):
    assert processes_of(WorkersSettings(embedded=embedded), cores=cores) == processes


def _send(client: Penstock, seen: Path, text: str) -> None:
    client.enqueue(application.write.kind, {"file": str(seen), "text": text}, queue="shop")


def _lines(seen: Path) -> list[str]:
    return seen.read_text().splitlines() if seen.exists() else []


def _children(pid: int) -> list[int]:
    """The children of all its threads."""
    files = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for file in files for child in file.read_text().split()]
