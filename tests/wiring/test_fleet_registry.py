"""The workers of a fleet in the registry."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.limits import Limits
from penstock.domain.worker import NewWorker, Worker
from penstock.outbound.dice import SystemDice
from penstock.ports.scaling import FleetMember
from penstock.services.workers import WorkerService
from penstock.wiring.autoscaling import StoreFleetRegistry


@pytest.fixture
def workers(store, clock) -> WorkerService:
    return WorkerService(store, clock, SystemDice(), Limits(), valid_ms=60_000)


@pytest.fixture
def registry(workers, store, clock) -> StoreFleetRegistry:
    return StoreFleetRegistry(workers, store, clock)


def test_live_workers_of_a_fleet_are_found_by_their_label(workers, registry, clock):
    silent = _add(workers, "silent", fleet="mail")
    clock.advance(seconds=50)
    mine = _add(workers, "a", fleet="mail", replica="1")
    draining = _add(workers, "b", fleet="mail")
    left = _add(workers, "c", fleet="mail")
    _add(workers, "d", fleet="reports")
    _add(workers, "e")
    workers.drain(draining.id).result()
    workers.leave(left.id).result()
    clock.advance(seconds=10)  # now the silent one is overdue, though it is not marked as lost yet

    found = sorted(registry.members("mail"), key=lambda member: member.host or "")
    assert found == [_member(mine, "a", replica="1"), _member(draining, "b", is_draining=True)]
    assert silent.id not in {member.id for member in registry.members("mail")}


def test_a_worker_with_leases_is_not_idle(workers, registry, driver):
    idle, busy = _add(workers, "a"), _add(workers, "b")
    mail = driver.queue("mail")
    driver.send_many(mail, 3)
    driver.claim(mail, 3, claimed_by=busy.id)

    assert registry.lease_counts([idle.id, busy.id]) == {idle.id: 0, busy.id: 3}


def test_a_worker_is_drained_and_one_that_is_gone_is_not_an_error(workers, registry):
    there, gone = _add(workers, "a"), _add(workers, "b")
    workers.leave(gone.id).result()

    for worker_id in (there.id, gone.id, "unknown"):
        registry.drain(worker_id)

    assert workers.get(there.id).result().is_draining


def _add(workers: WorkerService, host: str, **labels: str) -> Worker:
    return workers.register(NewWorker(host=host, labels=labels)).result()


def _member(worker: Worker, host: str, **more: Any) -> FleetMember:
    options = {"replica": None, "is_draining": False, **more}
    return FleetMember(id=worker.id, host=host, registered_at=worker.registered_at, **options)
