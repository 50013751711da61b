"""Messages that are received too often move to a dead-letter queue."""

from __future__ import annotations

import json

import pytest

from tests.clocks import ManualClock
from tests.edge.api import Api
from tests.edge.sqs.aws import Aws, arn_of, name_of, refused


def redrive_to(letters: str, count: int = 1) -> str:
    return json.dumps({"deadLetterTargetArn": arn_of(letters), "maxReceiveCount": count})


@pytest.fixture
def letters(aws: Aws) -> str:
    return aws.make("letters")


def test_a_message_is_moved_instead_of_being_received_once_too_often(
    aws: Aws, letters: str, clock: ManualClock
) -> None:
    queue = aws.make(RedrivePolicy=redrive_to(letters, 2))
    attributes = {"k": {"DataType": "Number", "StringValue": "1"}}
    sent_at = clock.now()
    sent = aws.send(queue, "ill-fated", MessageAttributes=attributes)

    for _ in range(2):
        assert aws.bodies(queue) == ["ill-fated"]
        assert aws.receive(letters) == []
        clock.advance(seconds=30)
    assert aws.receive(queue) == []

    got = aws.receive_one(letters, MessageAttributeNames=["All"], AttributeNames=["All"])
    assert got["MessageId"] == sent["MessageId"]
    assert got["Body"] == "ill-fated"
    assert got["MessageAttributes"] == attributes
    assert got["Attributes"]["DeadLetterQueueSourceArn"] == arn_of(queue)
    assert got["Attributes"]["SentTimestamp"] == str(sent_at)
    assert got["Attributes"]["ApproximateReceiveCount"] == "3"  # it carries on
    assert aws.counts(queue) == (0, 0, 0)
    assert aws.counts(letters) == (0, 1, 0)


def test_a_message_given_back_too_often_is_moved(aws: Aws, letters: str) -> None:
    queue = aws.make(RedrivePolicy=redrive_to(letters, 2))
    aws.send(queue)

    for _ in range(2):
        aws.hide(queue, aws.handle(queue), 0)

    assert aws.receive(queue) == []
    assert aws.bodies(letters) == ["hello"]


def test_receives_without_a_timeout_count(aws: Aws, letters: str) -> None:
    queue = aws.make(VisibilityTimeout=0, RedrivePolicy=redrive_to(letters, 3))
    aws.send(queue)

    received = [len(aws.receive(queue)) for _ in range(4)]

    assert received == [1, 1, 1, 0]
    assert aws.bodies(letters) == ["hello"]


def test_without_a_policy_a_message_can_be_received_for_ever(
    aws: Aws, queue: str, clock: ManualClock
) -> None:
    aws.send(queue)

    for count in range(1, 21):
        got = aws.receive_one(queue, AttributeNames=["All"])
        assert got["Attributes"]["ApproximateReceiveCount"] == str(count)
        clock.advance(seconds=30)


def test_a_policy_that_is_gone_gives_up_on_nothing(
    aws: Aws, letters: str, clock: ManualClock
) -> None:
    queue = aws.make(RedrivePolicy=redrive_to(letters, 1))
    aws.set(queue, RedrivePolicy="")
    aws.send(queue)

    for _ in range(5):
        assert aws.bodies(queue) == ["hello"]
        clock.advance(seconds=30)


def test_a_last_receive_that_succeeds_is_in_time(aws: Aws, letters: str) -> None:
    queue = aws.make(RedrivePolicy=redrive_to(letters, 1))
    aws.send(queue)

    aws.delete(queue, aws.handle(queue))

    assert aws.counts(queue) == aws.counts(letters) == (0, 0, 0)


def test_a_late_consumer_deletes_a_message_that_has_become_a_dead_letter(
    aws: Aws, letters: str, clock: ManualClock
) -> None:
    queue = aws.make(RedrivePolicy=redrive_to(letters, 1))
    aws.send(queue)
    aws.send(queue)
    handles = [aws.handle(queue) for _ in range(2)]
    clock.advance(seconds=30)
    assert aws.counts(queue) == (0, 0, 0)
    assert aws.counts(letters) == (2, 0, 0)

    with refused("InvalidParameterValue"):
        aws.hide(queue, handles[0], 10)
    aws.delete(queue, handles[0])
    entry = {"Id": "late", "ReceiptHandle": handles[1]}
    shown = aws.client.delete_message_batch(QueueUrl=queue, Entries=[entry])

    assert shown["Successful"] == [{"Id": "late"}]
    assert aws.counts(letters) == (0, 0, 0)


def test_a_dead_letter_that_was_received_is_not_deleted_by_a_handle_from_before(
    aws: Aws, letters: str, clock: ManualClock
) -> None:
    queue = aws.make(RedrivePolicy=redrive_to(letters, 1))
    aws.send(queue)
    handle = aws.handle(queue)
    clock.advance(seconds=30)
    assert aws.receive(queue) == []
    aws.receive_one(letters)

    aws.delete(queue, handle)

    assert aws.counts(letters) == (0, 1, 0)


def test_an_ineffective_policy_is_returned_as_written(aws: Aws, queue: str) -> None:
    text = redrive_to(queue).replace(name_of(queue), "nowhere").replace(":", " : ", 1)

    for do in (lambda: aws.make(RedrivePolicy=text), lambda: aws.set(queue, RedrivePolicy=text)):
        with refused(
            "InvalidParameterValue",
            f"Value {text} for parameter RedrivePolicy is invalid. Reason: Dead letter target "
            "does not exist.",
        ):
            do()


def test_the_retention_of_dead_letters_counts_from_their_arrival(
    aws: Aws, clock: ManualClock
) -> None:
    """AWS counts from the send; Penstock keeps them a little longer, so that none is lost."""
    letters = aws.make(MessageRetentionPeriod=100)
    queue = aws.make(VisibilityTimeout=80, RedrivePolicy=redrive_to(letters, 1))
    aws.send(queue)
    aws.receive_one(queue)
    clock.advance(seconds=80)
    assert aws.receive(queue) == []

    clock.advance(seconds=99)
    assert aws.counts(letters) == (1, 0, 0)
    clock.advance(seconds=1)

    assert aws.counts(letters) == (0, 0, 0)


def test_without_their_queue_dead_letters_rest_where_they_died(
    aws: Aws, api: Api, letters: str, clock: ManualClock
) -> None:
    """AWS still delivers them to receivers; here the native API lists them."""
    queue = aws.make(RedrivePolicy=redrive_to(letters, 1))
    aws.client.delete_queue(QueueUrl=letters)
    aws.send(queue)
    aws.receive_one(queue)
    clock.advance(seconds=30)

    assert aws.receive(queue) == []
    assert api.counts(name_of(queue)) == {"dead": 1}
    api.call("POST", f"/v1/queues/{name_of(queue)}/redrive").raise_for_status()
    assert aws.bodies(queue) == ["hello"]


def test_dead_letters_of_a_fifo_queue_keep_their_group_and_free_it(
    aws: Aws, clock: ManualClock
) -> None:
    letters = aws.make_fifo()
    line = aws.make_fifo(RedrivePolicy=redrive_to(letters, 1))
    aws.send(line, "ill-fated", MessageGroupId="g", MessageDeduplicationId="d")
    aws.send(line, "next", MessageGroupId="g")
    assert aws.bodies(line, 1) == ["ill-fated"]
    assert aws.bodies(line) == []

    clock.advance(seconds=30)

    assert aws.bodies(line) == ["next"]
    got = aws.receive_one(letters, AttributeNames=["All"])
    assert got["Body"] == "ill-fated"
    shown = got["Attributes"]
    assert (shown["MessageGroupId"], shown["MessageDeduplicationId"]) == ("g", "d")
    assert shown["DeadLetterQueueSourceArn"] == arn_of(line)
    assert shown["SequenceNumber"]


def test_the_sources_of_a_dead_letter_queue_are_listed(aws: Aws, letters: str) -> None:
    sources = [aws.make(RedrivePolicy=redrive_to(letters)) for _ in range(3)]
    aws.make(RedrivePolicy=redrive_to(aws.make()))

    answer = aws.client.list_dead_letter_source_queues(QueueUrl=letters)

    assert sorted(answer["queueUrls"]) == sorted(sources)
    assert "NextToken" not in answer
    none = aws.client.list_dead_letter_source_queues(QueueUrl=sources[0])
    assert none["queueUrls"] == []


def test_a_queue_whose_redrive_policy_was_removed_is_not_a_source(aws: Aws, letters: str) -> None:
    queue = aws.make(RedrivePolicy=redrive_to(letters))

    aws.set(queue, RedrivePolicy="")

    assert aws.client.list_dead_letter_source_queues(QueueUrl=letters)["queueUrls"] == []


@pytest.mark.parametrize("kind", ["standard", "fifo"])
def test_a_queue_may_be_its_own_dead_letter_queue(aws: Aws, kind: str) -> None:
    queue = aws.make() if kind == "standard" else aws.make_fifo()
    group = {} if kind == "standard" else {"MessageGroupId": "g"}
    policy = {"deadLetterTargetArn": arn_of(queue), "maxReceiveCount": 2}
    aws.set(queue, RedrivePolicy=json.dumps(policy))
    for body in ("poison", "fine"):
        aws.send(queue, body, **group)

    received = [
        aws.receive_one(queue, VisibilityTimeout=0, AttributeNames=["All"]) for _ in range(3)
    ]

    assert [got["Body"] for got in received] == ["poison", "poison", "fine"]  # sent to the back
    last = aws.receive(queue, AttributeNames=["All"])[-1]
    assert last["Body"] == "poison"
    assert last["Attributes"]["DeadLetterQueueSourceArn"] == arn_of(queue)
    assert last["Attributes"]["ApproximateReceiveCount"] == "3"
    sources = aws.client.list_dead_letter_source_queues(QueueUrl=queue)["queueUrls"]
    assert sources == [queue]
    assert aws.counts(queue) == (0, 2, 0)


def test_an_empty_redrive_policy_removes_it(aws: Aws, letters: str) -> None:
    queue = aws.make(RedrivePolicy=redrive_to(letters))

    aws.set(queue, RedrivePolicy="")

    assert aws.attribute(queue, "RedrivePolicy") is None
