"""A message that is sent twice within five minutes is one message."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from tests.clocks import ManualClock
from tests.edge.sqs.aws import Aws, name_of, refused

pytestmark = pytest.mark.both_stores


def send(aws: Aws, line: str, body: str, dedup: str | None = None, group: str = "g") -> Any:
    own = {} if dedup is None else {"MessageDeduplicationId": dedup}
    return aws.send(line, body, MessageGroupId=group, **own)


def test_the_same_id_makes_no_second_message(aws: Aws, line: str) -> None:
    first = send(aws, line, "one", "d")

    second = send(aws, line, "two", "d")

    assert second["MessageId"] == first["MessageId"]
    assert second["SequenceNumber"] == first["SequenceNumber"]
    assert aws.bodies(line) == ["one"]


def test_an_id_is_good_again_after_five_minutes(aws: Aws, line: str, clock: ManualClock) -> None:
    first = send(aws, line, "one", "d")
    clock.advance(minutes=4, seconds=59)
    send(aws, line, "two", "d")  # does not restart the window
    clock.advance(seconds=1)

    third = send(aws, line, "three", "d")

    assert third["MessageId"] != first["MessageId"]
    assert aws.bodies(line) == ["one", "three"]


def test_an_id_is_remembered_after_the_message_is_gone(aws: Aws, line: str) -> None:
    send(aws, line, "one", "d")
    aws.delete(line, aws.handle(line))

    send(aws, line, "two", "d")

    assert aws.counts(line) == (0, 0, 0)


def test_the_content_is_the_deduplication_id_if_the_queue_is_set_to_that(
    aws: Aws, line: str
) -> None:
    attributes = {"k": {"DataType": "String", "StringValue": "v"}}
    first = aws.send(line, "bödy", MessageGroupId="g")

    second = aws.send(line, "bödy", MessageGroupId="g", MessageAttributes=attributes)

    assert second["MessageId"] == first["MessageId"]
    got = aws.receive_one(line, AttributeNames=["All"], MessageAttributeNames=["All"])
    digest = hashlib.sha256("bödy".encode()).hexdigest()
    assert got["Attributes"]["MessageDeduplicationId"] == digest
    assert "MessageAttributes" not in got


def test_an_id_of_its_own_comes_before_the_content_and_shares_its_space(
    aws: Aws, line: str
) -> None:
    digest = hashlib.sha256(b"body").hexdigest()

    send(aws, line, "body", "own")
    send(aws, line, "body")
    send(aws, line, "other", digest)

    assert aws.bodies(line) == ["body", "body"]


def test_without_content_an_id_is_needed(aws: Aws) -> None:
    line = aws.make_fifo(ContentBasedDeduplication="false")

    with refused(
        "InvalidParameterValue",
        "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId "
        "provided explicitly",
    ):
        send(aws, line, "body")
    aws.set(line, ContentBasedDeduplication="true")
    send(aws, line, "body")


def test_an_id_counts_for_the_whole_queue(aws: Aws, line: str) -> None:
    send(aws, line, "one", "d", group="a")
    send(aws, line, "two", "d", group="b")

    assert aws.bodies(line) == ["one"]


def test_or_for_each_group(aws: Aws) -> None:
    line = aws.make_fifo(DeduplicationScope="messageGroup")

    send(aws, line, "one", "d", group="a")
    send(aws, line, "two", "d", group="b")
    send(aws, line, "three", "d", group="a")

    assert aws.bodies(line) == ["one", "two"]


def test_queues_do_not_share_ids(aws: Aws, line: str) -> None:
    other = aws.make_fifo()

    for one in (line, other):
        send(aws, one, "body", "d")
        assert aws.bodies(one) == ["body"]


def test_a_purge_forgets_ids(aws: Aws, line: str) -> None:
    send(aws, line, "one", "d")
    aws.client.purge_queue(QueueUrl=line)

    send(aws, line, "two", "d")

    assert aws.bodies(line) == ["two"]


def test_a_deleted_queue_forgets_ids(aws: Aws, line: str) -> None:
    send(aws, line, "one", "d")
    aws.client.delete_queue(QueueUrl=line)
    again = aws.make_named(name_of(line), FifoQueue="true")

    send(aws, again, "two", "d")

    assert aws.bodies(again) == ["two"]


def test_duplicates_in_one_batch_are_one_message(aws: Aws, line: str) -> None:
    entry = {"MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": "d"}

    answer = aws.send_batch(line, entry, entry)

    first, second = answer["Successful"]
    assert first["MessageId"] == second["MessageId"]
    assert aws.bodies(line) == ["x"]


def test_a_later_change_of_the_scope_is_shown_and_has_no_effect(aws: Aws, line: str) -> None:
    def send(group: str, key: str) -> str:
        sent = aws.send(line, f"{group}{key}", MessageGroupId=group, MessageDeduplicationId=key)
        return str(sent["MessageId"])

    before = send("a", "1")
    aws.set(line, DeduplicationScope="messageGroup", FifoThroughputLimit="perMessageGroupId")
    after = send("a", "2")

    assert send("b", "1") == before
    assert send("b", "2") == after
    assert aws.bodies(line) == ["a1", "a2"]
    shown = aws.attributes(line)
    assert shown["DeduplicationScope"] == "messageGroup"
    assert shown["FifoThroughputLimit"] == "perMessageGroupId"
