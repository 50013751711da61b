"""The counters, and retention: evaluated by the clock at the time of the request."""

from __future__ import annotations

import pytest

from tests.clocks import ManualClock
from tests.edge.sqs.aws import Aws

pytestmark = pytest.mark.both_stores


def test_a_message_is_counted_where_it_is(aws: Aws, queue: str, clock: ManualClock) -> None:
    aws.send(queue, DelaySeconds=10)
    assert aws.counts(queue) == (0, 0, 1)
    clock.advance(seconds=10)
    assert aws.counts(queue) == (1, 0, 0)
    handle = aws.handle(queue)
    assert aws.counts(queue) == (0, 1, 0)
    clock.advance(seconds=30)
    assert aws.counts(queue) == (1, 0, 0)
    aws.delete(queue, handle)
    assert aws.counts(queue) == (0, 0, 0)


@pytest.mark.parametrize(
    "name", ["", "NotVisible", "Delayed"], ids=["visible", "in flight", "delayed"]
)
def test_a_counter_is_right_if_nothing_else_is_asked_for(
    aws: Aws, queue: str, clock: ManualClock, name: str
) -> None:
    aws.send(queue, DelaySeconds=10)
    clock.advance(seconds=10)

    shown = aws.attribute(queue, f"ApproximateNumberOfMessages{name}")

    assert shown == ("0" if name else "1")


def test_many_messages_fall_due_together(aws: Aws, queue: str, clock: ManualClock) -> None:
    for _ in range(101):
        entries = [{"MessageBody": "x", "DelaySeconds": 5} for _ in range(10)]
        aws.send_batch(queue, *entries)

    clock.advance(seconds=5)

    assert aws.counts(queue) == (1010, 0, 0)


def test_a_message_is_gone_after_the_retention_period(aws: Aws, clock: ManualClock) -> None:
    queue = aws.make(MessageRetentionPeriod=60, DelaySeconds=0)
    aws.send(queue, "visible")
    aws.send(queue, "delayed", DelaySeconds=100)
    clock.advance(seconds=59)
    assert aws.counts(queue) == (1, 0, 1)

    clock.advance(seconds=1)

    assert aws.counts(queue) == (0, 0, 0)
    assert aws.receive(queue) == []


def test_a_leased_message_can_be_finished_after_its_retention(aws: Aws, clock: ManualClock) -> None:
    """AWS deletes it."""
    queue = aws.make(MessageRetentionPeriod=60, VisibilityTimeout=100)
    aws.send_all(queue, "finished", "abandoned")
    handle = aws.handle(queue)
    aws.receive_one(queue)
    clock.advance(seconds=99)

    assert aws.counts(queue) == (0, 2, 0)
    aws.delete(queue, handle)
    clock.advance(seconds=1)

    assert aws.counts(queue) == (0, 0, 0)


def test_a_new_retention_is_for_new_messages(aws: Aws, queue: str, clock: ManualClock) -> None:
    """AWS also applies it to existing messages."""
    aws.send(queue, "before")
    aws.set(queue, MessageRetentionPeriod=60)
    aws.send(queue, "after")

    clock.advance(seconds=60)

    assert aws.bodies(queue) == ["before"]
