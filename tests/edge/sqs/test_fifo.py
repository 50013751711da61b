"""FIFO queues: strict order inside a group, and groups that do not wait for each other."""

from __future__ import annotations

import pytest

from tests.clocks import ManualClock
from tests.edge.api import Api
from tests.edge.sqs.aws import Aws, name_of, refused

pytestmark = pytest.mark.both_stores


def send(aws: Aws, line: str, *messages: str) -> None:
    """Each name begins with its group: `a1` goes to group a."""
    for message in messages:
        aws.send(line, message, MessageGroupId=message[0])


def test_a_message_of_a_fifo_queue_has_a_group(aws: Aws, line: str) -> None:
    with refused("MissingParameter", "The request must contain the parameter MessageGroupId."):
        aws.send(line)


def test_the_system_attributes_of_a_fifo_message(aws: Aws, line: str) -> None:
    sent = aws.send(line, MessageGroupId="g", MessageDeduplicationId="d")

    assert len(sent["SequenceNumber"]) == 20
    assert sent["SequenceNumber"].startswith("188")
    for _ in range(2):
        got = aws.receive_one(line, VisibilityTimeout=0, AttributeNames=["All"])
        shown = got["Attributes"]
        assert shown["MessageGroupId"] == "g"
        assert shown["MessageDeduplicationId"] == "d"
        assert shown["SequenceNumber"] == sent["SequenceNumber"]


def test_sequence_numbers_grow(aws: Aws, line: str) -> None:
    numbers = [
        int(aws.send(line, str(n), MessageGroupId=str(n % 2))["SequenceNumber"]) for n in range(6)
    ]

    assert numbers == sorted(set(numbers))


def test_one_receive_takes_a_group_as_far_as_it_goes_then_the_next(aws: Aws, line: str) -> None:
    send(aws, line, "a1", "b1", "a2", "a3")

    assert aws.bodies(line) == ["a1", "a2", "a3", "b1"]


def test_a_receive_of_one_takes_the_first_of_each_group(aws: Aws, line: str) -> None:
    send(aws, line, "a1", "a2", "b1")

    assert [aws.bodies(line, 1) for _ in range(3)] == [["a1"], ["b1"], []]


def test_a_group_waits_while_any_of_it_is_in_flight(aws: Aws, line: str) -> None:
    send(aws, line, "a1", "a2", "a3", "b1")
    first, second = aws.receive(line, 2)
    assert aws.bodies(line) == ["b1"]

    aws.delete(line, first["ReceiptHandle"])
    assert aws.bodies(line) == []
    send(aws, line, "a4")
    assert aws.bodies(line) == []
    aws.delete(line, second["ReceiptHandle"])

    assert aws.bodies(line) == ["a3", "a4"]


def test_a_group_given_back_goes_behind_the_groups_that_waited(aws: Aws, line: str) -> None:
    send(aws, line, "a1", "b1", "c1")
    handles = [aws.handle(line) for _ in range(2)]

    for handle in handles:
        aws.hide(line, handle, 0)

    assert aws.bodies(line) == ["c1", "a1", "b1"]


def test_a_group_whose_timeout_is_over_goes_behind_the_groups_that_waited(
    aws: Aws, line: str, clock: ManualClock
) -> None:
    send(aws, line, "a1", "a2", "b1", "c1")
    assert [aws.bodies(line, 1) for _ in range(2)] == [["a1"], ["b1"]]

    clock.advance(seconds=31)

    assert aws.bodies(line) == ["c1", "a1", "a2", "b1"]


def test_a_receive_without_a_timeout_sends_the_group_to_the_back(aws: Aws, line: str) -> None:
    send(aws, line, "a1", "b1")

    received = [aws.bodies(line, 1, VisibilityTimeout=0) for _ in range(4)]

    assert received == [["a1"], ["b1"], ["a1"], ["b1"]]


def test_a_group_that_came_back_is_ahead_of_groups_sent_later(aws: Aws, line: str) -> None:
    send(aws, line, "a1", "b1")
    aws.hide(line, aws.handle(line), 0)
    assert aws.bodies(line, 1) == ["b1"]  # the first receive since then: a1 is back

    send(aws, line, "c1")

    assert aws.bodies(line) == ["a1", "c1"]


def test_messages_deleted_out_of_order_leave_the_others_in_order(aws: Aws, line: str) -> None:
    send(aws, line, "a1", "a2", "a3")
    handles = {m["Body"]: m["ReceiptHandle"] for m in aws.receive(line)}

    aws.delete(line, handles["a2"])
    for body in ("a1", "a3"):
        aws.hide(line, handles[body], 0)

    assert aws.bodies(line) == ["a1", "a3"]


def test_redelivered_messages_come_in_order(aws: Aws, line: str, clock: ManualClock) -> None:
    send(aws, line, "a1", "a2", "a3")
    assert aws.bodies(line, 2) == ["a1", "a2"]

    clock.advance(seconds=30)

    assert aws.bodies(line) == ["a1", "a2", "a3"]


def test_no_message_of_a_group_overtakes_one_that_is_in_flight(
    aws: Aws, line: str, clock: ManualClock
) -> None:
    send(aws, line, "a1", "a2", "a3")
    handles = [m["ReceiptHandle"] for m in aws.receive(line)]
    aws.hide(line, handles[1], 100)

    clock.advance(seconds=30)

    assert aws.bodies(line) == ["a1"]
    assert aws.bodies(line) == []


def test_a_receive_without_a_timeout_leaves_the_group_free(aws: Aws, line: str) -> None:
    send(aws, line, "a1", "a2")

    assert aws.bodies(line, VisibilityTimeout=0) == ["a1", "a2"]
    assert aws.bodies(line, VisibilityTimeout=0) == ["a1", "a2"]
    assert aws.counts(line) == (2, 0, 0)


def test_a_change_to_zero_frees_the_group_at_once(aws: Aws, line: str) -> None:
    send(aws, line, "a1", "a2")
    handle = aws.handle(line)

    aws.hide(line, handle, 0)

    assert aws.bodies(line) == ["a1", "a2"]


def test_messages_behind_one_in_flight_count_as_visible(aws: Aws, line: str) -> None:
    send(aws, line, "a1", "a2", "a3")
    aws.receive_one(line)

    assert aws.counts(line) == (2, 1, 0)


# --- delays ---


def test_a_fifo_message_has_no_delay_of_its_own(aws: Aws, line: str) -> None:
    with refused(
        "InvalidParameterValue",
        "Value 2 for parameter DelaySeconds is invalid. Reason: The request include parameter that "
        "is not valid for this queue type.",
    ):
        aws.send(line, MessageGroupId="g", DelaySeconds=2)


@pytest.mark.parametrize("fields", [{}, {"DelaySeconds": 0}])
def test_the_delay_of_the_queue_is_for_all(aws: Aws, clock: ManualClock, fields: dict) -> None:
    line = aws.make_fifo(DelaySeconds=10)
    aws.send(line, MessageGroupId="g", **fields)

    assert aws.counts(line) == (0, 0, 1)
    assert aws.receive(line) == []
    clock.advance(seconds=10)

    assert aws.bodies(line) == ["hello"]


def test_a_delayed_message_keeps_back_those_behind_it(
    aws: Aws, api: Api, line: str, clock: ManualClock
) -> None:
    api.send(name_of(line), "a1", group="a", delay_ms=10_000)  # only the native API can set this
    send(aws, line, "a2", "b1")

    assert aws.bodies(line) == ["b1"]
    clock.advance(seconds=10)

    assert aws.bodies(line) == ["a1", "a2"]


# --- ids ---


@pytest.mark.parametrize("parameter", ["MessageGroupId", "MessageDeduplicationId"])
@pytest.mark.parametrize("wrong", [" ", "a b", "x" * 129, "ä", "\t"])
def test_ids_have_their_characters(aws: Aws, line: str, parameter: str, wrong: str) -> None:
    with refused(
        "InvalidParameterValue",
        f"Value {wrong} for parameter {parameter} is invalid. Reason: {parameter} can only include "
        "alphanumeric and punctuation characters. 1 to 128 in length.",
    ):
        aws.send(line, **{"MessageGroupId": "g", parameter: wrong})


def test_any_punctuation_will_do(aws: Aws, line: str) -> None:
    every = "".join(map(chr, range(0x21, 0x7F)))

    aws.send(line, MessageGroupId=every, MessageDeduplicationId=every)

    shown = aws.receive_one(line, AttributeNames=["All"])["Attributes"]
    assert (shown["MessageGroupId"], shown["MessageDeduplicationId"]) == (every, every)
