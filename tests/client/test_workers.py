"""The client's view of workers."""

from __future__ import annotations

import pytest

from penstock.client.remote.server import Remote
from penstock.client.worker.roll import about
from penstock.domain import errors
from penstock.domain.worker import NewWorker, WorkerState
from penstock.worker.assignment import Order
from tests.clocks import ManualClock
from tests.edge import conftest as edge
from tests.edge.api import a_name

pytestmark = pytest.mark.no_store("server")
clock = edge.clock


def test_a_worker_registers_beats_and_leaves(remote: Remote, clock: ManualClock):
    mailer = NewWorker(name="mailer", queues=("mail",), kinds=("welcome",), slots=2)

    worker = remote.workers.register(mailer)
    clock.advance(minutes=1)
    beaten = remote.workers.beat(worker.id)

    assert (worker.name, worker.queues, worker.kinds, worker.slots) == (
        "mailer",
        ("mail",),
        ("welcome",),
        2,
    )
    assert (worker.valid_ms, worker.beat_ms) == (180_000, 15_000)
    assert beaten is not None
    assert beaten.alive_until > worker.alive_until
    remote.workers.leave(worker.id)
    assert remote.workers.beat(worker.id) is None
    assert remote.workers.get(worker.id).state is WorkerState.LEFT


def test_a_worker_is_told_to_drain(remote: Remote):
    worker = remote.workers.register()
    assert not worker.is_draining

    assert remote.workers.drain(worker.id).is_draining

    beaten = remote.workers.beat(worker.id)
    assert beaten is not None
    assert beaten.is_draining


def test_workers_are_listed_page_by_page_with_what_they_hold(remote: Remote):
    queue = remote.queues.put(a_name()).name
    workers = [remote.workers.register() for _ in range(3)]
    sent = remote.send(queue, 1)
    remote.claim(queue, claimed_by=workers[0].id)
    remote.workers.leave(workers[2].id)

    listed = {worker.id: worker.holding for worker in remote.workers.list()}

    assert (listed[workers[0].id], listed[workers[1].id]) == (1, 0)
    assert workers[2].id not in listed
    assert workers[2].id in {worker.id for worker in remote.workers.list(gone=True)}
    leases = remote.workers.get(workers[0].id).leases
    assert leases is not None
    assert [lease.id for lease in leases] == [sent.id]
    page = remote.workers.page(limit=1)
    assert (len(page.workers), page.next) == (1, page.workers[0].id)


def test_an_unknown_worker_is_refused(remote: Remote):
    with pytest.raises(errors.WorkerNotFound):
        remote.workers.get("none")
    with pytest.raises(errors.WorkerNotFound):
        remote.workers.drain("none")
    assert remote.workers.beat("none") is None


def test_an_application_with_very_many_kinds_of_jobs_can_be_registered(remote: Remote):
    told = about(Order(queues=("mail",)), [f"job-{n}" for n in range(101)])

    assert remote.workers.register(told).queues == ("mail",)
