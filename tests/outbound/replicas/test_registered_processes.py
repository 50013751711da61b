"""Processes that are workers: the registry shows which run, which are idle, which are foreign."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.domain.errors import ReplicasUnavailable
from penstock.domain.scaling.recommendation import Replicas
from penstock.domain.worker import NewWorker, Worker
from penstock.ports.scaling import FLEET, REPLICA
from tests.clocks import NOON
from tests.outbound.replicas.conftest import read_ledger, soon_gone
from tests.store.driver import StoreDriver


@pytest.fixture
def fleet(make):
    return make(app="shop.jobs:app")


@pytest.fixture
def driver(store, clock) -> StoreDriver:
    return StoreDriver(store, clock)


def test_a_worker_is_starting_until_it_is_registered(fleet, workers, home):
    fleet.scale_to(2, now=NOON)
    assert fleet.count(now=NOON + 1) == Replicas(running=0, starting=2, requested=2)

    _registers(workers, _replicas(home)[0])

    assert fleet.count(now=NOON + 1) == Replicas(running=1, starting=1, requested=2)


def test_a_worker_that_never_registers_counts_as_running_after_a_while(fleet):
    fleet.scale_to(1, now=NOON)

    assert fleet.count(now=NOON + 59_999).starting == 1
    assert fleet.count(now=NOON + 60_000) == Replicas(running=1, requested=1)


def test_idle_workers_are_ended_first_and_the_busiest_last(fleet, workers, home, driver):
    busy: dict[int, str] = {}
    for n, holds in enumerate((0, 2, 0, 7, 1)):  # from the oldest to the youngest
        fleet.scale_to(n + 1, now=NOON + n)
        replica = _replicas(home)[-1]
        _holds(driver, _registers(workers, replica), holds)
        busy[n] = replica

    fleet.scale_to(3, now=NOON + 10)
    assert _replicas(home) == [busy[1], busy[3], busy[4]]
    fleet.scale_to(1, now=NOON + 11)

    assert _replicas(home) == [busy[3]]


def test_a_starting_worker_is_ended_before_a_busy_one(fleet, workers, home, driver):
    fleet.scale_to(1, now=NOON)
    [working] = _replicas(home)
    _holds(driver, _registers(workers, working), 1)
    fleet.scale_to(2, now=NOON)

    fleet.scale_to(1, now=NOON)

    assert _replicas(home) == [working]


def test_workers_of_the_fleet_that_were_started_elsewhere_are_counted(fleet, workers):
    fleet.scale_to(1, now=NOON)
    _registers(workers, None)
    _registers(workers, "of-an-autoscaler-that-was-killed")
    _registers(workers, None, fleet="reports")

    assert fleet.count(now=NOON) == Replicas(running=2, starting=1, requested=3)


def test_workers_started_elsewhere_are_drained_through_the_registry(fleet, workers):
    theirs = [_registers(workers, name) for name in ("a", "b", None)]

    fleet.scale_to(1, now=NOON)

    draining = [one.id for one in theirs if workers.get(one.id).result().is_draining]
    assert len(draining) == 2
    assert fleet.count(now=NOON) == Replicas(running=1, requested=1)


def test_an_idle_worker_started_elsewhere_is_ended_before_a_busy_one_of_ours(
    fleet, workers, home, driver
):
    fleet.scale_to(1, now=NOON)
    _holds(driver, _registers(workers, _replicas(home)[0]), 1)
    theirs = _registers(workers, None)

    fleet.scale_to(1, now=NOON)

    assert workers.get(theirs.id).result().is_draining
    assert len(_replicas(home)) == 1


def test_an_idle_worker_of_ours_is_ended_first_because_it_reacts_at_once(fleet, workers, home):
    fleet.scale_to(1, now=NOON)
    _registers(workers, _replicas(home)[0])
    theirs = _registers(workers, None)

    fleet.scale_to(1, now=NOON)

    assert not workers.get(theirs.id).result().is_draining
    assert _replicas(home) == []


def test_a_process_with_several_workers_counts_once(fleet, workers, home):
    fleet.scale_to(1, now=NOON)
    for replica in (*_replicas(home), "theirs"):
        _registers(workers, replica)
        _registers(workers, replica)

    assert fleet.count(now=NOON) == Replicas(running=2, requested=2)


def test_a_worker_whose_process_has_ended_is_not_counted_though_it_is_still_registered(
    fleet, workers, home
):
    fleet.scale_to(1, now=NOON)
    _registers(workers, _replicas(home)[0])

    fleet.scale_to(0, now=NOON)
    assert fleet.count(now=NOON) == Replicas(running=0, requested=0)
    _wait_until_gone(fleet, home)

    assert fleet.count(now=NOON) == Replicas(running=0, requested=0)


def test_a_worker_that_drains_is_not_counted(fleet, workers):
    theirs = _registers(workers, None)
    workers.drain(theirs.id).result()

    assert fleet.count(now=NOON) == Replicas(running=0, requested=0)


def test_without_the_registry_nothing_is_known_and_nothing_is_done(fleet, store):
    store.close()

    for ask in (lambda: fleet.count(now=NOON), lambda: fleet.scale_to(1, now=NOON)):
        with pytest.raises(ReplicasUnavailable, match="registry of workers cannot be read"):
            ask()


def _registers(workers, replica: str | None, fleet: str = "mail") -> Worker:
    labels = {FLEET: fleet} | ({REPLICA: replica} if replica else {})
    return workers.register(NewWorker(labels=labels)).result()


def _holds(driver: StoreDriver, worker: Worker, count: int) -> None:
    queue = driver.queue(f"of-{worker.id}")
    if count:
        driver.send_many(queue, count)
        driver.claim(queue, count, claimed_by=worker.id)


def _replicas(home: Path) -> list[str]:
    """Those that are to stay, from the oldest to the youngest."""
    staying = [one for one in read_ledger(home).started if one.ending_since is None]
    return [one.replica for one in sorted(staying, key=lambda one: one.started_at)]


def _wait_until_gone(fleet, home: Path) -> None:
    for one in read_ledger(home).started:
        soon_gone(one.pid, one.start_time)
    fleet.maintain(now=NOON)
    assert read_ledger(home).started == []
