"""An autoscaler that is killed leaves its workers behind, and the next one continues with them."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from penstock.wiring.autoscaling import FOLDER
from tests.autoscaling import application
from tests.autoscaling.test_command_line import PATIENCE_S, Autoscale, pids, started, workers
from tests.support.waiting import eventually

__all__ = ["started"]


def test_workers_of_a_killed_autoscaler_keep_working_and_are_found_by_the_next(
    app, broker, url, tmp_path, started
):
    seen, gate = tmp_path / "seen", tmp_path / "gate"
    application.wait_for.enqueue(str(seen), str(gate))
    first = Autoscale(tmp_path, url, more="min = 1")
    started.append(first)
    eventually(lambda: _lines(seen), within_s=PATIENCE_S)
    before = pids(_ledger(tmp_path))

    first.process.kill()
    first.process.wait()
    killed = _forget_the_lease(broker)
    second = Autoscale(tmp_path, url, more="min = 1")
    started.append(second)
    eventually(lambda: "leads group" in second.log.read_text(), within_s=PATIENCE_S)
    eventually(lambda: _is_counted(broker, not_by=killed), within_s=PATIENCE_S)

    assert pids(_ledger(tmp_path)) == before
    gate.touch()
    assert second.end() == 0
    assert _lines(seen)[1:] == ["end"]
    assert workers(broker) == 0


def test_a_worker_that_is_killed_is_replaced(app, broker, url, tmp_path, started):
    started.append(Autoscale(tmp_path, url, more="min = 1"))
    application.brief.enqueue(str(tmp_path / "seen"), "1")
    eventually(lambda: (tmp_path / "seen").exists(), within_s=PATIENCE_S)
    [pid] = pids(_ledger(tmp_path))

    os.killpg(pid, signal.SIGKILL)
    application.brief.enqueue(str(tmp_path / "again"), "2")

    eventually(lambda: (tmp_path / "again").exists(), within_s=PATIENCE_S)
    assert pid not in pids(_ledger(tmp_path))


def _ledger(folder: Path) -> Path:
    return folder / "data" / FOLDER / "mailers.json"


def _forget_the_lease(broker) -> str:
    """It would run out by itself, in half a minute.  Returns whose it was."""
    [status] = broker.scaling.all().result()
    broker.scaling.leave(status.group, holder=status.seen_by)
    return str(status.seen_by)


def _is_counted(broker, *, not_by: str) -> bool:
    [status] = broker.scaling.all().result()
    is_new = status.seen_by != not_by
    return is_new and status.replicas is not None and status.replicas.running == 1


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []
