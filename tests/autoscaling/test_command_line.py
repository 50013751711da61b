"""`penstock autoscale` as people run it: a process of its own, that runs others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from penstock.domain.circuit.circuit import circuit_hash
from penstock.domain.circuit.settings import BreakerSettings
from penstock.domain.scaling.fleet_status import FleetStatus
from penstock.outbound.replicas.launch import start_time
from penstock.outbound.replicas.ledger import LedgerState
from penstock.wiring.autoscaling import FOLDER
from penstock.wiring.broker import Broker
from tests.autoscaling import application
from tests.support.waiting import eventually

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120.0
FLEETS = """
[profiles.default]
samples_needed = 1
backlog_goal_s = 1

[fleets.mailers]
queue = "mail"
max = 2
interval_ms = "1s"
steady_ms = "2s"
{more}

[fleets.mailers.replicas]
kind = "processes"
app = "tests.autoscaling.application:app"
slots = 1
arguments = ["--beat", "200ms", "--prefetch", "0"]
"""


class Autoscale:
    def __init__(self, folder: Path, url: str, *flags: str, more: str = "") -> None:
        file = folder / "fleets.toml"
        file.write_text(FLEETS.format(more=more))
        command = ["autoscale", "--fleets", str(file), "--data", str(folder / "data"), "--json"]
        self.log = folder / "autoscale.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "penstock", *command, "--store", url, *flags],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def line(self) -> dict[str, object]:
        assert self.process.stdout is not None
        return dict(json.loads(self.process.stdout.readline()))

    def end(self) -> int:
        """Returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)


@pytest.fixture
def started(tmp_path: Path) -> Iterator[list[Autoscale]]:
    """Nothing of these is left after a test."""
    found: list[Autoscale] = []
    yield found
    for one in found:
        one.process.kill()
        one.process.wait()
        assert one.process.stdout is not None
        one.process.stdout.close()
    for pid in pids(tmp_path / "data" / FOLDER / "mailers.json"):
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


def pids(ledger: Path) -> list[int]:
    """Of processes that run."""
    if not ledger.exists():
        return []
    book = msgspec.json.decode(ledger.read_bytes(), type=LedgerState)
    return [one.pid for one in book.started if start_time(one.pid) == one.start_time]


def status(broker: Broker) -> FleetStatus | None:
    return next(iter(broker.scaling.all().result()), None)


def reason(broker: Broker) -> str | None:
    found = status(broker)
    return found.decision.reason if found and found.decision else None


def workers(broker: Broker) -> int:
    return len([one for one in broker.workers.all().result() if one.ended_at is None])


def test_it_starts_workers_and_stops_them_when_it_ends(app, broker, url, tmp_path, started):
    seen, gate = tmp_path / "seen", tmp_path / "gate"
    for _ in range(2):
        application.wait_for.enqueue(str(seen), str(gate))
    autoscale = Autoscale(tmp_path, url, more="min = 2")
    started.append(autoscale)
    assert autoscale.line() == {"ready": ["mailers"], "dry_run": False}

    eventually(
        lambda: seen.exists() and len(seen.read_text().splitlines()) == 2, within_s=PATIENCE_S
    )
    assert workers(broker) == 2
    gate.touch()
    assert autoscale.end() == 0

    assert workers(broker) == 0  # both have finished and left
    ends = [line for line in seen.read_text().splitlines() if line == "end"]
    assert len(ends) == 2


def test_a_dry_run_starts_no_worker(app, broker, url, tmp_path, started):
    application.brief.enqueue(str(tmp_path / "seen"), "1")
    autoscale = Autoscale(tmp_path, url, "--dry-run")
    started.append(autoscale)
    assert autoscale.line() == {"ready": ["mailers"], "dry_run": True}

    eventually(lambda: reason(broker) == "first_message", within_s=PATIENCE_S)
    assert autoscale.end() == 0

    assert workers(broker) == 0
    assert not (tmp_path / "seen").exists()


def test_no_worker_is_started_while_a_circuit_is_open(app, broker, url, tmp_path, started):
    broker.circuits.breaker.put(BreakerSettings(circuit_check_enabled=True)).result()
    broker.circuits.force_open(circuit_hash("smtp"), pattern="smtp").result()
    application.brief.enqueue(str(tmp_path / "seen"), "1")
    started.append(Autoscale(tmp_path, url, more='routes = ["smtp"]'))

    eventually(lambda: reason(broker) == "circuit_open", within_s=PATIENCE_S)
    assert workers(broker) == 0

    broker.circuits.close(circuit_hash("smtp")).result()
    eventually(lambda: (tmp_path / "seen").exists(), within_s=PATIENCE_S)
