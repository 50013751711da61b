"""Visibility timeouts: how long a message is hidden, and who may change that."""

from __future__ import annotations

import pytest

from tests.clocks import ManualClock
from tests.edge.sqs.aws import Aws, refused

pytestmark = pytest.mark.both_stores

NOT_AVAILABLE = "Message does not exist or is not available for visibility timeout change."


def test_a_received_message_is_hidden_for_its_timeout(
    aws: Aws, queue: str, clock: ManualClock
) -> None:
    aws.send(queue)
    assert aws.bodies(queue) == ["hello"]
    assert aws.counts(queue) == (0, 1, 0)

    clock.advance(seconds=29)
    assert aws.receive(queue) == []
    clock.advance(seconds=1)

    assert aws.counts(queue) == (1, 0, 0)
    assert aws.bodies(queue) == ["hello"]


def test_a_receive_may_have_a_timeout_of_its_own(aws: Aws, clock: ManualClock) -> None:
    queue = aws.make(VisibilityTimeout=100)
    aws.send(queue)
    aws.receive(queue, VisibilityTimeout=5)

    clock.advance(seconds=5)

    assert len(aws.receive(queue)) == 1
    clock.advance(seconds=99)
    assert aws.receive(queue) == []  # the queue's own timeout again


def test_a_new_timeout_counts_from_now(aws: Aws, queue: str, clock: ManualClock) -> None:
    aws.send(queue)
    handle = aws.handle(queue)
    clock.advance(seconds=20)

    aws.hide(queue, handle, 60)

    clock.advance(seconds=59)
    assert aws.receive(queue) == []
    clock.advance(seconds=1)
    assert aws.handle(queue)
    clock.advance(seconds=30)
    assert aws.handle(queue)  # a change does not apply to the next receive


def test_a_timeout_of_zero_makes_a_message_visible_at_once(aws: Aws, queue: str) -> None:
    aws.send_all(queue, "a", "b")
    handle = aws.handle(queue)

    aws.hide(queue, handle, 0)

    assert aws.counts(queue) == (2, 0, 0)
    assert aws.bodies(queue) == ["a", "b"]


def test_a_handle_whose_time_is_over_hides_the_message_again(
    aws: Aws, queue: str, clock: ManualClock
) -> None:
    aws.send(queue)
    handle = aws.handle(queue)
    clock.advance(seconds=31)
    assert aws.counts(queue) == (1, 0, 0)

    aws.hide(queue, handle, 10)

    assert aws.counts(queue) == (0, 1, 0)
    assert aws.receive(queue) == []
    clock.advance(seconds=10)
    assert len(aws.receive(queue)) == 1


def test_an_older_handle_acts_on_the_message_as_it_is_now(
    aws: Aws, queue: str, clock: ManualClock
) -> None:
    aws.send(queue)
    older = aws.handle(queue)
    clock.advance(seconds=30)
    newer = aws.handle(queue)

    aws.hide(queue, older, 100)
    aws.hide(queue, older, 100)

    clock.advance(seconds=99)
    assert aws.receive(queue) == []
    aws.delete(queue, newer)  # the present receiver still has it
    assert aws.counts(queue) == (0, 0, 0)


def test_a_deleted_message_cannot_be_hidden(aws: Aws, queue: str, line: str) -> None:
    for one in (queue, line):
        aws.send(one, MessageGroupId="g")
        handle = aws.handle(one)
        aws.delete(one, handle)

        with refused(
            "InvalidParameterValue",
            f"Value {handle} for parameter ReceiptHandle is invalid. Reason: {NOT_AVAILABLE}",
        ):
            aws.hide(one, handle, 10)


def test_a_fifo_message_cannot_be_hidden_by_an_older_handle(
    aws: Aws, line: str, clock: ManualClock
) -> None:
    aws.send(line, MessageGroupId="g")
    older = aws.handle(line)
    clock.advance(seconds=30)
    aws.receive_one(line)

    with refused("InvalidParameterValue"):
        aws.hide(line, older, 100)


@pytest.mark.parametrize("handle", ["nonsense", "", "a" * 56])
def test_an_invalid_handle_is_rejected(aws: Aws, queue: str, handle: str) -> None:
    code = "ReceiptHandleIsInvalid" if handle else "MissingParameter"
    with refused(code) as refusal:
        aws.hide(queue, handle, 1)

    if handle:
        assert refusal.kind == "ReceiptHandleIsInvalid"
        assert refusal.text == f'The input receipt handle "{handle}" is not a valid receipt handle.'


def test_a_handle_of_another_queue_is_refused(aws: Aws, queue: str) -> None:
    other = aws.make()
    aws.send(other)
    handle = aws.handle(other)

    with refused("ReceiptHandleIsInvalid"):
        aws.hide(queue, handle, 0)

    assert aws.counts(other) == (0, 1, 0)


def test_a_timeout_is_needed_and_has_its_range(aws: Aws, queue: str) -> None:
    aws.send(queue)
    handle = aws.handle(queue)

    with refused("MissingParameter", "The request must contain the parameter VisibilityTimeout."):
        aws.loose.change_message_visibility(QueueUrl=queue, ReceiptHandle=handle)
    for wrong in (-1, 43_201):
        with refused("InvalidParameterValue"):
            aws.hide(queue, handle, wrong)
    aws.hide(queue, handle, 43_200)


def test_a_message_is_leased_for_at_most_twelve_hours(
    aws: Aws, queue: str, clock: ManualClock
) -> None:
    aws.send(queue)
    handle = aws.handle(queue, VisibilityTimeout=600)
    clock.advance(seconds=200)

    with refused(
        "InvalidParameterValue",
        "Value 43001 for parameter VisibilityTimeout is invalid. Reason: Total VisibilityTimeout "
        "for the message is beyond the limit [43200 seconds].",
    ):
        aws.hide(queue, handle, 43_001)
    aws.hide(queue, handle, 43_000)
