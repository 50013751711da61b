"""Sticky subscriptions: a worker handles the events that it published itself."""

from __future__ import annotations

import pytest

from penstock import Penstock
from penstock.domain.bus.subscription import Dispatch
from penstock.domain.worker import NewWorker
from penstock.runtime.worker_duties import WorkerQueueReaper
from penstock.wiring.broker import Broker
from tests.client.bus.driver import BusDriver, counts, exists
from tests.client.calls import beside


@pytest.fixture
def node_queues(broker: Broker) -> WorkerQueueReaper:
    return WorkerQueueReaper(broker.bus, broker.queues, every_ms=1_000)


def test_a_worker_handles_the_sticky_events_that_it_published(app, worker, clock, broker, topic):
    seen: list[str] = []

    @app.subscribe(topic, dispatch="sticky")
    def mailer(event: str) -> None:
        seen.append(event)

    other = BusDriver(app, clock, broker=broker)
    assert worker.claim() == []
    app.publish(topic, "mine")  # by the worker of this process

    assert other_claims(app, other) == []
    assert counts(broker, f"{topic}.mailer--{worker.id}").ready == 1
    worker.round()
    assert seen == ["mine"]


def other_claims(app: Penstock, other: BusDriver) -> list[str]:
    """What another worker, elsewhere, claims from the queues it knows."""
    source, queues = app.backend.source(), app.queues
    work, _ = beside(
        lambda: source.claim(queues, limit=9, lease_ms=60_000, worker_id=other.worker_id)
    )
    return [one.id for one in work]


def test_a_process_that_is_not_a_worker_publishes_for_all(app, worker, broker, topic):
    broker.topics.subscribe(topic, "a", dispatch=Dispatch.STICKY).result()

    app.publish(topic, 1)
    app.publish(topic, 2, node="unknown")
    claims_elsewhere = broker.workers.register(NewWorker(queues=("mail",))).result()
    app.publish(topic, 3, node=claims_elsewhere.id)

    assert counts(broker, f"{topic}.a").ready == 3


@pytest.mark.parametrize("end", ["lost", "left", "drained"])
def test_when_the_worker_is_gone_its_events_go_to_the_others(
    app, clock, node_queues, end, broker, topic
):
    broker.topics.subscribe(topic, "a", dispatch=Dispatch.STICKY).result()
    node = broker.workers.register(NewWorker()).result().id
    own = f"{topic}.a--{node}"
    for n in range(3):
        app.publish(topic, n, node=node)

    node_queues.tick(clock.now())
    assert counts(broker, own).ready == 3  # while the worker is alive, they are its own

    match end:
        case "lost":
            clock.advance(ms=broker.settings.workers.valid_ms)
        case "left":
            broker.workers.leave(node).result()
        case "drained":
            broker.workers.drain(node).result()
    node_queues.tick(clock.now())

    assert not exists(broker, own)
    claimed = broker.messages.claim(broker.directory.load(f"{topic}.a").result(), limit=9).result()
    assert [content.body for _, content in claimed.messages] == ["0", "1", "2"]
    app.publish(topic, 3, node=node)
    assert counts(broker, f"{topic}.a").ready == 1


def test_leased_and_delayed_events_of_a_lost_worker_are_moved_when_they_become_ready(
    app, clock, node_queues, broker, topic
):
    broker.topics.subscribe(topic, "a", dispatch=Dispatch.STICKY).result()
    node = broker.workers.register(NewWorker()).result().id
    app.publish(topic, 1, node=node)
    app.publish(topic, 2, node=node, delay="1h")
    own = broker.directory.load(f"{topic}.a--{node}").result()
    broker.messages.claim(own, lease_ms=60_000, claimed_by=node).result()
    clock.advance(ms=broker.settings.workers.valid_ms)

    node_queues.tick(clock.now())
    assert exists(broker, own.name)  # one is still leased, one is not due

    broker.queues.make_due_ready_some(own.name).result()
    node_queues.tick(clock.now())
    assert counts(broker, f"{topic}.a").ready == 1

    clock.advance(hours=1)
    broker.queues.make_due_ready_some(own.name).result()
    node_queues.tick(clock.now())
    assert counts(broker, f"{topic}.a").ready == 2
    assert not exists(broker, own.name)
