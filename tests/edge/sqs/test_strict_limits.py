"""With `sqs.limits = strict`, a server makes clients wait as AWS does."""

from __future__ import annotations

import pytest

from penstock.edge.sqs import receiving
from tests.clocks import ManualClock
from tests.edge.api import a_name
from tests.edge.conftest import MakeServer
from tests.edge.sqs.aws import Aws, name_of, refused

OLD = "AWS.SimpleQueueService."


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def strict(make_server: MakeServer, clock: ManualClock) -> Aws:
    return Aws(make_server(clock=clock, sqs={"limits": "strict"}).url)


def test_a_name_can_be_used_again_after_sixty_seconds(strict: Aws, clock: ManualClock) -> None:
    queue = strict.make()
    strict.client.delete_queue(QueueUrl=queue)
    clock.advance(seconds=59)

    with refused(
        f"{OLD}QueueDeletedRecently",
        "You must wait 60 seconds after deleting a queue before you can create another with the "
        "same name.",
    ) as refusal:
        strict.make_named(name_of(queue))

    assert refusal.kind == "QueueDeletedRecently"
    strict.make()  # other callers can
    clock.advance(seconds=1)
    assert strict.make_named(name_of(queue)) == queue


def test_a_queue_can_be_purged_every_sixty_seconds(strict: Aws, clock: ManualClock) -> None:
    queue, other = strict.make(), strict.make()
    strict.client.purge_queue(QueueUrl=queue)
    strict.send(queue)
    clock.advance(seconds=59)

    with refused(
        f"{OLD}PurgeQueueInProgress",
        f"Only one PurgeQueue operation on {name_of(queue)} is allowed every 60 seconds.",
        status=403,
    ) as refusal:
        strict.client.purge_queue(QueueUrl=queue)

    assert refusal.kind == "PurgeQueueInProgress"
    assert strict.counts(queue) == (1, 0, 0)
    strict.client.purge_queue(QueueUrl=other)
    clock.advance(seconds=1)
    strict.client.purge_queue(QueueUrl=queue)
    assert strict.counts(queue) == (0, 0, 0)


def test_messages_are_kept_for_at_least_sixty_seconds(strict: Aws) -> None:
    queue = strict.make(MessageRetentionPeriod=60)

    for wrong in (59, 0):
        with refused("InvalidAttributeValue"):
            strict.set(queue, MessageRetentionPeriod=wrong)
        with refused("InvalidAttributeValue"):
            strict.make_named(a_name(), MessageRetentionPeriod=wrong)


def test_there_is_a_limit_to_messages_in_flight(
    strict: Aws, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiving, "MAX_IN_FLIGHT", 2)
    queue = strict.make()
    strict.send_all(queue, "a", "b", "c")
    [first, _] = strict.receive(queue, 2)

    with refused("OverLimit", status=403) as refusal:
        strict.receive(queue)
    assert refusal.kind == "OverLimit"

    strict.delete(queue, first["ReceiptHandle"])
    assert strict.bodies(queue, 1) == ["c"]
    clock.advance(seconds=30)
    assert strict.bodies(queue) == ["b", "c"]  # after its timeout a message is not in flight


def test_a_waiting_receive_returns_nothing_beyond_that_limit(
    strict: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiving, "MAX_IN_FLIGHT", 1)
    queue = strict.make()
    strict.send_all(queue, "a", "b")
    strict.receive_one(queue)

    assert strict.receive(queue, WaitTimeSeconds=1) == []
