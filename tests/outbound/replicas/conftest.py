"""Fleets of small programs: none of them does anything, but all of them are real processes."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.domain.limits import Limits
from penstock.domain.scaling.fleet import Processes
from penstock.outbound.dice import SystemDice
from penstock.outbound.replicas.launch import Launch, orphans, start_time
from penstock.outbound.replicas.ledger import LedgerState, StartedProcess
from penstock.outbound.replicas.processes import ProcessReplicas
from penstock.ports.store import Store
from penstock.services.workers import WorkerService
from penstock.store.store import open_sqlite
from penstock.wiring.autoscaling import StoreFleetRegistry
from tests.clocks import ManualClock
from tests.support.waiting import eventually

PATIENCE_S = 30.0
FLEET = "mail"
SLEEP = ("sleep", "600")

Make = Callable[..., ProcessReplicas]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_sqlite(tmp_path / "penstock.db")
    yield store
    store.close()


@pytest.fixture
def workers(store: Store, clock: ManualClock) -> WorkerService:
    return WorkerService(store, clock, SystemDice(), Limits())


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """Where it is kept what was started; whatever is left of it after the test is ended."""
    folder = tmp_path / "fleets"
    yield folder
    for one in read_ledger(folder).started:
        if is_group_alive(one):
            with suppress(ProcessLookupError):
                os.killpg(one.pid, signal.SIGKILL)
    for thread in threading.enumerate():  # a closed fleet writes its ledger once more
        if thread.name == f"penstock-end-of-{FLEET}":
            thread.join()


@pytest.fixture
def make(home: Path, workers: WorkerService, store: Store, clock: ManualClock) -> Make:
    """An autoscaler's view of the fleet; a second one is that of another autoscaler."""

    def make(run: tuple[str, ...] = SLEEP, **more: Any) -> ProcessReplicas:
        options: dict[str, Any] = more if "app" in more else {"run": run, **more}
        spec = Processes(**options)
        launch = Asleep(FLEET, spec, queues=("mail",), store_url="sqlite:///nowhere.db")
        registry = StoreFleetRegistry(workers, store, clock)
        return ProcessReplicas(
            FLEET, spec, launch, folder=home, registry=registry, clock=clock, dice=SystemDice()
        )

    return make


class Asleep(Launch):
    """In place of a worker of an application something that does nothing for as long."""

    def command(self, replica: str) -> list[str]:
        return super().command(replica) if self._spec.app is None else list(SLEEP)


def read_ledger(home: Path) -> LedgerState:
    path = home / f"{FLEET}.json"
    return (
        msgspec.json.decode(path.read_bytes(), type=LedgerState) if path.exists() else LedgerState()
    )


def pids(home: Path) -> list[int]:
    """Of those that run and are to stay."""
    return [
        one.pid
        for one in read_ledger(home).started
        if one.ending_since is None and start_time(one.pid) == one.start_time
    ]


def soon_gone(pid: int, started: str) -> None:
    eventually(lambda: start_time(pid) != started, within_s=PATIENCE_S)


def group_soon_gone(one: StartedProcess) -> None:
    """Its process and those that it started, which may outlive it for an instant."""
    eventually(lambda: not is_group_alive(one), within_s=PATIENCE_S)


def is_group_alive(one: StartedProcess) -> bool:
    is_alive = start_time(one.pid) == one.start_time
    return is_alive or bool(orphans(one.pid, Launch.mark(one.replica)))


def kill(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Returns when it is dead, before the fleet has noticed."""
    started = start_time(pid)
    assert started is not None
    os.kill(pid, number)
    soon_gone(pid, started)
