"""Sticky subscriptions: what a worker has published it handles itself."""

from __future__ import annotations

import pytest

from penstock import Penstock
from penstock.domain.topic import Dispatch
from penstock.domain.worker import NewWorker
from penstock.runtime.node_queues import NodeQueues
from tests.client.bus.hand_worker import HandWorker, broker_of, counts, exists


@pytest.fixture
def node_queues(app: Penstock) -> NodeQueues:
    broker = broker_of(app)
    return NodeQueues(broker.bus, broker.queues, every_ms=1_000)


def test_what_a_worker_published_it_handles_itself(app, worker, clock):
    seen: list[str] = []

    @app.subscribe("orders", dispatch="sticky")
    def mailer(event: str) -> None:
        seen.append(event)

    other = HandWorker(app, clock)
    source = app.work_source()
    source.claim(app.queues, limit=1, lease_ms=1, worker_id=worker.id)
    app.publish("orders", "mine")  # by the worker of this process

    assert other_claims(app, other) == []
    assert counts(app, f"orders.mailer--{worker.id}").ready == 1
    work, _ = source.claim(app.queues, limit=9, lease_ms=60_000, worker_id=worker.id)
    for one in work:
        source.act([worker.handle(one)])
    assert seen == ["mine"]


def other_claims(app: Penstock, other: HandWorker) -> list[str]:
    """What another worker, elsewhere, finds in the queues it knows."""
    source = app.backing.source()
    work, _ = source.claim(app.queues, limit=9, lease_ms=60_000, worker_id=other.id)
    return [one.id for one in work]


def test_who_is_no_worker_publishes_for_all(app, worker):
    broker_of(app).bus.subscribe("orders", "a", dispatch=Dispatch.STICKY).result()

    app.publish("orders", 1)
    app.publish("orders", 2, node="nobody")
    claims_elsewhere = broker_of(app).workers.register(NewWorker(queues=("mail",))).result()
    app.publish("orders", 3, node=claims_elsewhere.id)

    assert counts(app, "orders.a").ready == 3


@pytest.mark.parametrize("end", ["lost", "left", "drained"])
def test_when_the_worker_is_gone_its_events_go_to_the_others(app, clock, node_queues, end):
    broker = broker_of(app)
    broker.bus.subscribe("orders", "a", dispatch=Dispatch.STICKY).result()
    node = broker.workers.register(NewWorker()).result().id
    own = f"orders.a--{node}"
    for n in range(3):
        app.publish("orders", n, node=node)

    node_queues.tick(clock.now())
    assert counts(app, own).ready == 3  # as long as it is there, they are its own

    match end:
        case "lost":
            clock.advance(ms=broker.settings.workers.valid_ms)
        case "left":
            broker.workers.leave(node).result()
        case "drained":
            broker.workers.drain(node).result()
    node_queues.tick(clock.now())

    assert not exists(app, own)
    claimed = broker.messages.claim(broker.directory.load("orders.a").result(), limit=9).result()
    assert [content.body for _, content in claimed.messages] == ["0", "1", "2"]
    app.publish("orders", 3, node=node)
    assert counts(app, "orders.a").ready == 1


def test_what_a_lost_worker_held_of_its_own_follows_when_it_is_back_in_line(
    app, clock, node_queues
):
    broker = broker_of(app)
    broker.bus.subscribe("orders", "a", dispatch=Dispatch.STICKY).result()
    node = broker.workers.register(NewWorker()).result().id
    app.publish("orders", 1, node=node)
    app.publish("orders", 2, node=node, delay="1h")
    own = broker.directory.load(f"orders.a--{node}").result()
    broker.messages.claim(own, lease_ms=60_000, claimed_by=node).result()
    clock.advance(ms=broker.settings.workers.valid_ms)

    node_queues.tick(clock.now())
    assert exists(app, own.name)  # one is leased still, one is not due

    broker.queues.bring_back_some(own.name).result()
    node_queues.tick(clock.now())
    assert counts(app, "orders.a").ready == 1

    clock.advance(hours=1)
    broker.queues.bring_back_some(own.name).result()
    node_queues.tick(clock.now())
    assert counts(app, "orders.a").ready == 2
    assert not exists(app, own.name)
