"""The example workers of the page about external workers run unchanged."""

from __future__ import annotations

import dataclasses
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.settings.workers import TasksSettings, WorkersSettings
from tests.docs.snippets import ROOT, read_blocks, run_script
from tests.edge.api import Api
from tests.edge.conftest import MakeProcess
from tests.edge.izenda.client import IzendaClient
from tests.edge.native.waiting import waiting_claims
from tests.edge.process import ServerProcess
from tests.support.programs import need
from tests.support.waiting import eventually

PAGE = "docs/external-workers.md"
PROGRAMS = {"worker.sh": "bash", "worker.py": sys.executable}
EXIT_S = 40  # a dequeue may have begun just then, and takes its 20 seconds

Start = Callable[[str], Path]


@pytest.fixture
def server(make_process: MakeProcess) -> ServerProcess:
    need("curl")
    return make_process()


@pytest.fixture
def izenda(server: ServerProcess) -> IzendaClient:
    return IzendaClient(Api(server.url))


@pytest.fixture
def start(server: ServerProcess, tmp_path: Path) -> Iterator[Start]:
    """Start a worker of the page; returns the file it writes to."""
    workers: list[subprocess.Popen[bytes]] = []

    def run(name: str) -> Path:
        program, output = tmp_path / name, tmp_path / f"{name}.out"
        program.write_text(read_blocks(PAGE, re.escape(name)), encoding="utf-8")
        with output.open("wb") as out:
            workers.append(
                subprocess.Popen(
                    [PROGRAMS[name], str(program)],
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    env=os.environ | {"URL": server.url, "EVERY": "0.2", "no_proxy": "*"},
                )
            )
        return output

    yield run

    for worker in workers:
        os.killpg(worker.pid, signal.SIGTERM)
        worker.wait(EXIT_S)


def list_workers(izenda: IzendaClient) -> list[str]:
    return [worker["id"] for worker in izenda.api.get("/v1/workers")["workers"]]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_worker_takes_tasks_and_reports_them(
    izenda: IzendaClient, start: Start, name: str
) -> None:
    tasks = [izenda.enqueue("Report", "42", data) for data in ('say "hi"', "weekly")]

    output = start(name)
    eventually(lambda: {izenda.status(task) for task in tasks} == {"succeeded"})
    tasks.append(izenda.enqueue("Report", "43", '{"id":"not mine"}'))  # while it waits
    eventually(lambda: izenda.status(tasks[-1]) == "succeeded")

    said = output.read_text()
    assert said.count("handling") == 3, said
    assert "weekly" in said
    [worker] = izenda.api.get("/v1/workers")["workers"]
    assert worker["name"] == name
    assert {izenda.task(task)["workerId"] for task in tasks} == {worker["id"]}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_worker_pings_and_registers_again_when_it_is_no_longer_valid(
    izenda: IzendaClient, start: Start, name: str
) -> None:
    start(name)
    eventually(lambda: len(list_workers(izenda)) == 1)
    [first] = izenda.api.get("/v1/workers")["workers"]
    eventually(lambda: izenda.api.get(f"/v1/workers/{first['id']}")["beat_at"] > first["beat_at"])

    izenda.api.call("DELETE", f"/v1/workers/{first['id']}")
    task = izenda.enqueue()

    eventually(lambda: izenda.status(task) == "succeeded")
    [second] = list_workers(izenda)
    assert second != first["id"]


def test_the_worker_in_bash_deregisters_when_it_is_terminated(
    izenda: IzendaClient, server: ServerProcess, tmp_path: Path
) -> None:
    program = tmp_path / "worker.sh"
    program.write_text(read_blocks(PAGE, re.escape("worker.sh")), encoding="utf-8")
    worker = subprocess.Popen(
        ["bash", str(program)],
        start_new_session=True,
        env=os.environ | {"URL": server.url, "EVERY": "60", "no_proxy": "*"},
    )
    eventually(lambda: waiting_claims(izenda.api) == 1)

    os.killpg(worker.pid, signal.SIGTERM)
    worker.wait(EXIT_S)

    assert list_workers(izenda) == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_work_that_raises_is_reported_as_failed(
    izenda: IzendaClient, start: Start, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = read_blocks(PAGE, re.escape(name))
    broken = {
        "worker.sh": page.replace('echo "handling $1"', "return 3"),
        "worker.py": page.replace('print("handling"', "raise ValueError(0)  # "),
    }[name]
    assert broken != page
    monkeypatch.setattr("tests.docs.test_external_workers.read_blocks", lambda *_: broken)
    task = izenda.enqueue()

    start(name)

    eventually(lambda: izenda.status(task) == "failed")


def test_the_worker_in_python_needs_the_standard_library_only() -> None:
    imported = re.findall(r"^(?:import|from) (\w+)", read_blocks(PAGE, "worker.py"), re.MULTILINE)

    assert set(imported) <= sys.stdlib_module_names


def test_a_task_is_enqueued_as_the_page_shows(server: ServerProcess) -> None:
    shown = run_script(server, read_blocks(PAGE, "enqueue"))

    assert '"status":"queued"' in shown
    assert '"jobData":"weekly"' in shown


def test_the_settings_are_those_of_the_code() -> None:
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `((?:tasks|workers)\.\w+)` \| `?(\w+)`? \|", page, re.MULTILINE))

    known = {f"tasks.{field.name}" for field in dataclasses.fields(TasksSettings)}
    assert known <= listed.keys()
    assert (listed["tasks.queue"], listed["tasks.timeout_ms"]) == (TasksSettings().queue, "unset")
    assert (WorkersSettings().valid_ms, listed["workers.valid_ms"]) == (180_000, "3m")
    assert (WorkersSettings().reap_interval_ms, listed["workers.reap_interval_ms"]) == (2_000, "2s")
