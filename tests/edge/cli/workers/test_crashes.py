"""Worker processes that crash: their jobs run again, and the cause is logged and kept."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from penstock.domain.message.history import Ending
from tests.edge.cli.workers import application
from tests.edge.cli.workers.driver import APP
from tests.edge.cli.workers.job_lookup import PATIENCE_S, message, soon_dead, view
from tests.support.processes import is_alive
from tests.support.waiting import eventually


@pytest.mark.both_stores
def test_a_job_whose_process_is_killed_halfway_is_run_again_and_completes(
    app, url, make_worker, tmp_path
):
    seen, gate = tmp_path / "seen", tmp_path / "gate"
    sent = application.wait_for.enqueue(str(seen), str(gate))
    make_worker(url)
    [first] = eventually(lambda: _begun(seen), within_s=PATIENCE_S)

    os.kill(first, signal.SIGKILL)
    eventually(lambda: len(_begun(seen)) == 2, within_s=PATIENCE_S)
    gate.touch()
    eventually(lambda: message(app, sent.id) is None, within_s=PATIENCE_S)

    assert "end stopping=False" in seen.read_text()


def test_a_killed_process_leaves_the_registry_when_its_successor_registers(
    app, url, make_worker, tmp_path
):
    seen = tmp_path / "seen"
    worker = make_worker(url)
    registry = app._lazy_backend.get().broker.workers
    application.write.enqueue(
        str(tmp_path / "first"), "a word"
    )  # its process is known to be running
    eventually((tmp_path / "first").exists, within_s=PATIENCE_S)
    [dead] = registry.all().result()
    assert dead.name == APP

    os.kill(worker.children[0], signal.SIGKILL)
    application.write.enqueue(str(seen), "next")
    eventually(seen.exists, within_s=PATIENCE_S)

    assert dead.id not in [each.id for each in registry.all().result()]


@pytest.mark.parametrize(("how", "error"), [("segfault", "SIGSEGV"), ("exit", "exit code 7")])
def test_a_job_that_kills_its_process_is_quarantined_with_the_cause_and_others_survive(
    app, url, make_worker, tmp_path, how, error
):
    seen, gate = tmp_path / "seen", tmp_path / "gate"
    beside = [application.wait_for.enqueue(str(tmp_path / "beside"), str(gate)) for _ in range(2)]
    culprit = application.crash.enqueue(str(seen), how)
    make_worker(url, "--slots", "4")

    dead = soon_dead(app, culprit.id)
    gate.touch()
    eventually(lambda: not any(message(app, m.id) for m in beside), within_s=PATIENCE_S)

    assert (dead.reason, dead.crashes, dead.attempts) == ("quarantined", 3, 3)
    assert dead.last_error is not None
    assert error in dead.last_error
    assert "peak memory" in dead.last_error
    assert seen.read_text() == "begin\n" * 3


@pytest.mark.both_stores
def test_when_the_supervisor_is_killed_its_children_exit_and_release_their_jobs(
    app, url, make_worker, tmp_path
):
    seen, gate = tmp_path / "seen", tmp_path / "gate"
    sent = application.wait_for.enqueue(str(seen), str(gate))
    worker = make_worker(url, "--drain-for", "200ms")
    eventually(lambda: _begun(seen), within_s=PATIENCE_S)

    worker.send(signal.SIGKILL)
    worker.wait()
    eventually(lambda: not any(map(is_alive, worker.children)), within_s=PATIENCE_S)

    left = message(app, sent.id)
    assert left is not None
    assert (left.state, left.attempts) == ("ready", 0)


@pytest.mark.both_stores
def test_a_job_with_a_short_time_limit_runs_again_when_its_whole_worker_is_killed(
    app, url, make_worker, tmp_path
):
    seen = tmp_path / "seen"
    sent = application.stays_the_first_time.enqueue(str(seen))
    worker = make_worker(url, "--lease", "5s")
    eventually(lambda: _begun(seen), within_s=PATIENCE_S)

    worker.kill_all()
    make_worker(url, "--lease", "5s")
    eventually(lambda: message(app, sent.id) is None, within_s=PATIENCE_S)

    ending = view(app, sent.id).message
    assert isinstance(ending, Ending)
    assert (ending.outcome, ending.attempts, ending.crashes) == ("done", 2, 0)
    assert len(_begun(seen)) == 2


def test_a_store_that_is_not_migrated_stops_the_worker_with_an_error(postgres_url, make_worker):
    worker = make_worker(postgres_url)

    assert worker.wait() == 1
    assert worker.log.read_text().endswith("run: penstock migrate --store URL\n")


def test_an_application_that_cannot_be_loaded_stops_the_worker_with_an_error(url, make_worker):
    worker = make_worker(url, app="tests.edge.cli.workers.nowhere:app")

    assert worker.wait() == 1
    assert "cannot be imported" in worker.log.read_text()


def _begun(seen: Path) -> list[int]:
    if not seen.exists():
        return []
    return [int(line.split()[1]) for line in seen.read_text().splitlines() if "begin" in line]
