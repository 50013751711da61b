"""ReceiveRequestAttemptId: a lost answer can be requested again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.clocks import ManualClock
from tests.edge.sqs.aws import Aws, refused

pytestmark = pytest.mark.both_stores

ATTEMPT: dict[str, Any] = {"ReceiveRequestAttemptId": "attempt-1"}
GONE = (
    "Value attempt-1 for parameter ReceiveRequestAttemptId is invalid. Reason: The "
    "receiveRequestAttemptId is not valid anymore since the receive call is not retryable."
)


def test_the_same_attempt_gives_the_same_messages_and_handles(aws: Aws, line: str) -> None:
    aws.send_all(line, "one", "two", "three", group="g")
    first = aws.receive(line, 2, **ATTEMPT)

    again = aws.receive(line, 2, **ATTEMPT)

    assert [message["Body"] for message in first] == ["one", "two"]
    assert again == first
    assert aws.bodies(line, 2, ReceiveRequestAttemptId="attempt-2") == []


def test_the_visibility_timeout_starts_again(aws: Aws, line: str, clock: ManualClock) -> None:
    aws.send(line, MessageGroupId="g")
    aws.receive(line, **ATTEMPT)
    clock.advance(seconds=20)
    [again] = aws.receive(line, **ATTEMPT)
    clock.advance(seconds=20)

    assert aws.bodies(line) == []
    aws.delete(line, again["ReceiptHandle"])


@pytest.mark.parametrize(
    "change",
    [
        lambda aws, line, handle: aws.delete(line, handle),
        lambda aws, line, handle: aws.hide(line, handle, 60),
    ],
    ids=["deleted", "changed"],
)
def test_once_something_has_happened_to_a_message_it_is_too_late(
    aws: Aws, line: str, change: Callable[[Aws, str, str], None]
) -> None:
    aws.send_all(line, "one", "two", group="g")
    first, _ = aws.receive(line, **ATTEMPT)
    change(aws, line, first["ReceiptHandle"])

    with refused("InvalidParameterValue", GONE):
        aws.receive(line, **ATTEMPT)


def test_an_attempt_that_found_nothing_is_not_remembered(aws: Aws, line: str) -> None:
    assert aws.receive(line, **ATTEMPT) == []
    aws.send(line, "one", MessageGroupId="g")

    assert aws.bodies(line, **ATTEMPT) == ["one"]


def test_after_five_minutes_it_is_a_new_attempt(aws: Aws, line: str, clock: ManualClock) -> None:
    aws.send_all(line, "one", "two", group="g")
    first = aws.receive(line, 1, VisibilityTimeout=600, **ATTEMPT)
    aws.delete(line, first[0]["ReceiptHandle"])
    clock.advance(seconds=300)

    assert aws.bodies(line, 1, **ATTEMPT) == ["two"]
