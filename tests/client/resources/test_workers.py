"""Workers through both channels of a client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.client.channel import Channel
from penstock.client.local.channel import LocalChannel
from penstock.client.remote.server import Remote
from penstock.client.remote.transport import Transport
from penstock.client.resources.workers import WorkerClient
from penstock.domain import errors
from penstock.domain.worker import NewWorker, WorkerState
from penstock.operations.workers import WorkerOperations
from penstock.services.workers import TaskLeases
from penstock.worker.assignment import Assignment
from penstock.worker.beats import describe_worker
from tests.clocks import NOON, ManualClock
from tests.edge.conftest import some_settings
from tests.edge.live import LiveServer

pytestmark = pytest.mark.no_store("server")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def server(tmp_path: Path, clock: ManualClock) -> Iterator[LiveServer]:
    settings = some_settings(tmp_path / "data")
    with LiveServer(settings, clock=clock, has_duties=False) as started:
        yield started


@pytest.fixture(params=["over HTTP", "in process"])
def workers(request: pytest.FixtureRequest, server: LiveServer) -> WorkerClient:
    channel: Channel
    if request.param == "over HTTP":
        channel = Transport(server.url)
    else:
        broker, settings = server.broker, server.broker.settings
        task_leases = TaskLeases(
            broker.workers,
            broker.directory,
            queue=settings.tasks.queue,
            grace_ms=settings.workers.grace_ms,
            most_ms=settings.limits.max_lease_ms,
        )
        operations = WorkerOperations(broker.workers, task_leases, beat_ms=settings.workers.beat_ms)
        channel = LocalChannel(operations.handlers())
    return WorkerClient(channel)


def test_a_worker_registers_beats_and_leaves(workers: WorkerClient, clock: ManualClock) -> None:
    mailer = NewWorker(name="mailer", queues=("mail",), kinds=("welcome",), slots=2)

    worker = workers.register(mailer)
    clock.advance(minutes=1)
    beaten = workers.beat(worker.id)

    assert (worker.name, worker.queues, worker.kinds, worker.slots) == (
        "mailer",
        ("mail",),
        ("welcome",),
        2,
    )
    assert (worker.valid_ms, worker.beat_ms) == (180_000, 15_000)
    assert worker.registered_at.timestamp() * 1000 == NOON
    assert beaten is not None
    assert beaten.alive_until > worker.alive_until
    workers.leave(worker.id)
    assert workers.beat(worker.id) is None
    assert workers.get(worker.id).state is WorkerState.LEFT


def test_a_worker_is_asked_to_drain(workers: WorkerClient) -> None:
    worker = workers.register()
    assert not worker.is_draining

    assert workers.drain(worker.id).is_draining

    beaten = workers.beat(worker.id)
    assert beaten is not None
    assert beaten.is_draining


def test_workers_are_listed_page_by_page_with_what_they_hold(
    workers: WorkerClient, server: LiveServer
) -> None:
    first, second, third = (workers.register() for _ in range(3))
    with Remote(server.url) as remote:
        remote.queues.put("mail")
        sent = remote.send("mail", 1)
        remote.claim("mail", claimed_by=first.id)
    workers.leave(third.id)

    listed = {worker.id: worker.holding for worker in workers.list()}

    assert listed == {first.id: 1, second.id: 0}
    assert third.id in {worker.id for worker in workers.list(gone=True)}
    alone = workers.get(first.id)
    assert (alone.holding, alone.leases is not None) == (1, True)
    assert [(lease.id, lease.queue) for lease in alone.leases or ()] == [(sent.id, "mail")]
    page = workers.page(limit=1)
    assert (len(page.workers), page.next) == (1, page.workers[0].id)
    rest = workers.page(cursor=page.next).workers
    assert {worker.id for worker in (*page.workers, *rest)} == {first.id, second.id}


def test_a_worker_that_leaves_releases_what_it_holds(
    workers: WorkerClient, server: LiveServer
) -> None:
    worker = workers.register()
    with Remote(server.url) as remote:
        remote.queues.put("mail")
        sent = remote.send("mail", 1)
        remote.claim("mail", claimed_by=worker.id)

        workers.leave(worker.id)

        assert [message.id for message in remote.claim("mail")] == [sent.id]


def test_an_unknown_worker_is_refused(workers: WorkerClient) -> None:
    with pytest.raises(errors.WorkerNotFound):
        workers.get("none")
    with pytest.raises(errors.WorkerNotFound):
        workers.drain("none")
    assert workers.beat("none") is None


def test_an_application_with_very_many_kinds_of_jobs_can_be_registered(
    workers: WorkerClient,
) -> None:
    application = describe_worker(Assignment(queues=("mail",)), [f"job-{n}" for n in range(101)])

    assert workers.register(application).queues == ("mail",)
