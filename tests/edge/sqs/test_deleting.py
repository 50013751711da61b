"""DeleteMessage with a valid handle, an old one, and none."""

from __future__ import annotations

import pytest

from tests.clocks import ManualClock
from tests.edge.sqs.aws import Aws, refused


def test_a_deleted_message_does_not_come_back(aws: Aws, queue: str, clock: ManualClock) -> None:
    aws.send_all(queue, "a", "b")
    handle = aws.handle(queue)

    aws.delete(queue, handle)

    clock.advance(hours=1)
    assert aws.bodies(queue) == ["b"]


def test_deleting_twice_is_not_an_error(aws: Aws, queue: str, line: str) -> None:
    for one in (queue, line):
        aws.send(one, MessageGroupId="g")
        handle = aws.handle(one)

        aws.delete(one, handle)
        aws.delete(one, handle)

        assert aws.counts(one) == (0, 0, 0)


def test_a_handle_whose_time_is_over_still_deletes(
    aws: Aws, queue: str, clock: ManualClock
) -> None:
    aws.send(queue)
    handle = aws.handle(queue)
    clock.advance(seconds=31)
    assert aws.counts(queue) == (1, 0, 0)

    aws.delete(queue, handle)

    assert aws.counts(queue) == (0, 0, 0)


def test_in_a_fifo_queue_a_handle_is_rejected_as_soon_as_its_time_is_over(
    aws: Aws, line: str, clock: ManualClock
) -> None:
    aws.send(line, "late", MessageGroupId="g")
    handle = aws.handle(line)
    clock.advance(seconds=31)

    with refused(
        "InvalidParameterValue",
        f"Value {handle} for parameter ReceiptHandle is invalid. "
        "Reason: The receipt handle has expired.",
    ):
        aws.delete(line, handle)

    assert aws.bodies(line) == ["late"]


def test_in_a_fifo_batch_only_the_handles_whose_time_is_over_are_rejected(
    aws: Aws, line: str, clock: ManualClock
) -> None:
    aws.send(line, "late", MessageGroupId="g")
    aws.send(line, "in time", MessageGroupId="h")
    late = aws.handle(line, VisibilityTimeout=10)
    in_time = aws.handle(line, VisibilityTimeout=60)
    clock.advance(seconds=31)

    answer = aws.client.delete_message_batch(
        QueueUrl=line,
        Entries=[{"Id": "late", "ReceiptHandle": late}, {"Id": "fine", "ReceiptHandle": in_time}],
    )

    assert [done["Id"] for done in answer["Successful"]] == ["fine"]
    assert [failed["Id"] for failed in answer["Failed"]] == ["late"]
    assert aws.bodies(line) == ["late"]


def test_a_message_given_back_can_still_be_deleted(aws: Aws, queue: str) -> None:
    aws.send(queue)
    handle = aws.handle(queue)
    aws.hide(queue, handle, 0)
    assert aws.counts(queue) == (1, 0, 0)

    aws.delete(queue, handle)

    assert aws.counts(queue) == (0, 0, 0)


def test_a_later_receiver_does_not_lose_its_message_to_an_older_handle(
    aws: Aws, queue: str, clock: ManualClock
) -> None:
    aws.send(queue)
    older = aws.handle(queue)
    clock.advance(seconds=30)
    newer = aws.handle(queue)

    aws.delete(queue, older)  # gets the same answer as a deletion

    assert aws.counts(queue) == (0, 1, 0)
    aws.delete(queue, newer)
    assert aws.counts(queue) == (0, 0, 0)


def test_an_expired_handle_of_a_fifo_queue_does_not_delete(
    aws: Aws, line: str, clock: ManualClock
) -> None:
    aws.send(line, MessageGroupId="g")
    handle = aws.handle(line)
    clock.advance(seconds=31)
    assert aws.counts(line) == (1, 0, 0)

    with refused(
        "InvalidParameterValue",
        f"Value {handle} for parameter ReceiptHandle is invalid. Reason: The receipt handle has "
        "expired.",
    ):
        aws.delete(line, handle)

    assert aws.counts(line) == (1, 0, 0)


def test_an_older_handle_of_a_fifo_queue_does_not_delete(
    aws: Aws, line: str, clock: ManualClock
) -> None:
    aws.send(line, MessageGroupId="g")
    older = aws.handle(line)
    clock.advance(seconds=30)
    newer = aws.handle(line)

    with refused("InvalidParameterValue"):
        aws.delete(line, older)

    aws.delete(line, newer)
    assert aws.counts(line) == (0, 0, 0)


@pytest.mark.parametrize("handle", ["nonsense", "a" * 56, "ä"])
def test_an_invalid_handle_is_rejected(aws: Aws, queue: str, handle: str) -> None:
    with refused(
        "ReceiptHandleIsInvalid",
        f'The input receipt handle "{handle}" is not a valid receipt handle.',
    ) as refusal:
        aws.delete(queue, handle)
    assert refusal.kind == "ReceiptHandleIsInvalid"


def test_a_handle_of_another_queue_is_refused(aws: Aws, queue: str) -> None:
    other = aws.make()
    aws.send(other)
    handle = aws.handle(other)

    with refused(
        "ReceiptHandleIsInvalid", f'The receipt handle "{handle}" is not valid for this queue.'
    ):
        aws.delete(queue, handle)

    assert aws.counts(other) == (0, 1, 0)


def test_a_handle_is_needed(aws: Aws, queue: str) -> None:
    with refused("MissingParameter", "The request must contain the parameter ReceiptHandle."):
        aws.loose.delete_message(QueueUrl=queue)


def test_a_handle_of_another_queue_deletes_nothing(aws: Aws, queue: str) -> None:
    other = aws.make()
    aws.send(other)
    handle = aws.handle(other)

    with refused("ReceiptHandleIsInvalid"):
        aws.delete(queue, handle)

    assert aws.counts(other) == (0, 1, 0)
