"""Start and exit of a worker's processes, and of the processes that jobs start."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import msgspec
import pytest

from penstock.domain.message.history import Ending
from tests.edge.cli.workers import application, hooks_application
from tests.edge.cli.workers.job_lookup import PATIENCE_S, message, soon_dead, view
from tests.support.processes import is_alive
from tests.support.waiting import eventually

HOOKED = "tests.edge.cli.workers.hooks_application:app"


def test_hooks_and_atexit_handlers_run_in_every_process_and_log_lines_name_their_job(
    url, make_worker, tmp_path, monkeypatch
):
    seen = tmp_path / "seen"
    monkeypatch.setenv("HOOKED_SEEN", str(seen))
    hooks_application.app.use(url)
    jobs = [
        hooks_application.use_the_pool,
        hooks_application.log_in_a_sandbox,
        hooks_application.log_in_a_thread,
    ]
    sent = {job.kind: job.enqueue().id for job in jobs}

    worker = make_worker(url, "--log-format", "json", app=HOOKED)
    eventually(
        lambda: not any(message(hooks_application.app, each) for each in sent.values()),
        within_s=PATIENCE_S,
    )
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0

    endings = [view(hooks_application.app, each).message for each in sent.values()]
    assert [isinstance(each, Ending) and each.outcome for each in endings] == ["done"] * 3
    hooks_application.app.close()
    noted = seen.read_text().splitlines()
    for role in ("work", "sandbox"):
        mine = [line.split()[1] for line in noted if line.startswith(role)]
        assert mine == ["start", "stop", "atexit"]
    lines = [msgspec.json.decode(line) for line in worker.log.read_text().splitlines()]
    named = {(line["kind"], line["job"]) for line in lines if line["logger"] == "shop.mail"}
    assert named == set(sent.items())


def test_a_failing_start_hook_stops_its_process_with_an_error_and_is_retried(
    url, make_worker, tmp_path, monkeypatch
):
    monkeypatch.setenv("HOOKED_BROKEN", str(tmp_path / "broken"))

    worker = make_worker(url, app=HOOKED)  # ready with its second process

    text = worker.log.read_text()
    assert "cannot start: the start hook start failed: ConnectionError: no database" in text


def test_a_module_that_exits_during_its_import_stops_the_worker_with_an_error(url, make_worker):
    worker = make_worker(url, app="tests.edge.cli.workers.exiting_module:app")

    assert worker.wait() == 1
    assert worker.log.read_text().count("SystemExit: DATABASE_URL is not set") == 1


def test_a_file_that_is_not_a_database_stops_the_worker_with_an_error(make_worker, tmp_path):
    (tmp_path / "notes.txt").write_text("These are notes, and not a database. " * 100)

    worker = make_worker(f"sqlite:///{tmp_path / 'notes.txt'}")

    assert worker.wait() == 1
    assert worker.log.read_text().count("is not a SQLite database") == 1


def test_processes_of_a_job_end_with_it_at_its_time_limit(app, url, make_worker, tmp_path):
    sent = application.starts_a_program.enqueue(str(tmp_path / "seen"))
    make_worker(url)

    dead = soon_dead(app, sent.id)

    assert dead.reason == "timed_out"
    eventually(lambda: not is_alive(_started(tmp_path / "seen")), within_s=PATIENCE_S)


@pytest.mark.parametrize("killed", ["the worker process", "all of it"])
def test_processes_of_a_job_end_when_its_worker_is_killed(app, url, make_worker, tmp_path, killed):
    seen = tmp_path / "seen"
    application.starts_a_program.using(timeout="10m").enqueue(str(seen))
    worker = make_worker(url)
    eventually(seen.exists, within_s=PATIENCE_S)
    program = eventually(lambda: _started(seen), within_s=PATIENCE_S)

    if killed == "all of it":
        worker.kill_all()
    else:
        os.kill(worker.children[0], signal.SIGKILL)

    eventually(lambda: not is_alive(program), within_s=PATIENCE_S)


def test_a_job_that_breaks_the_event_loop_is_named_and_others_are_not_blamed(
    app, url, make_worker, tmp_path
):
    seen, gate = tmp_path / "seen", tmp_path / "gate"
    beside = application.wait_for.enqueue(str(tmp_path / "beside"), str(gate))
    worker = make_worker(url, "--slots", "4")
    eventually((tmp_path / "beside").exists, within_s=PATIENCE_S)
    culprit = application.breaks_the_loop.enqueue(str(seen))

    dead = soon_dead(app, culprit.id)
    gate.touch()
    eventually(lambda: message(app, beside.id) is None, within_s=PATIENCE_S)

    assert (dead.crashes, dead.attempts) == (1, 2)
    ending = view(app, beside.id).message
    assert isinstance(ending, Ending)
    assert (ending.outcome, ending.attempts, ending.crashes) == ("done", 1, 0)
    log = worker.log.read_text()
    assert f"the event loop failed; jobs on it: breaks_the_loop {culprit.id}" in log
    assert "exit code 70 (its event loop failed)" in log


def _started(seen: Path) -> int:
    return int(seen.read_text().split()[1]) if seen.exists() and seen.read_text() else 0
