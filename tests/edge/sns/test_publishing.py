"""Publish and PublishBatch, and what subscribed queues receive."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.edge.sns.sns import Sns, refused, text
from tests.edge.sqs.aws import Aws


def test_each_subscribed_queue_gets_the_message(sns: Sns, topic: str) -> None:
    queues = [sns.raw(topic) for _ in range(3)]

    answer = sns.publish(topic, "hello")

    assert [sns.aws.bodies(queue) for queue in queues] == [["hello"]] * 3
    assert re.fullmatch("[0-9a-f-]{36}", answer["MessageId"])
    assert "SequenceNumber" not in answer


def test_a_queue_gets_an_envelope_unless_delivery_is_raw(sns: Sns, topic: str, queue: str) -> None:
    subscription = sns.subscribe(topic, queue)

    answer = sns.publish(
        topic,
        'say "hi"',
        Subject="news",
        MessageAttributes={
            "language": text("en"),
            "size": text("5", "Number"),
            "image": {"DataType": "Binary", "BinaryValue": b"\x01\x02"},
        },
    )

    [message] = sns.aws.receive(queue, MessageAttributeNames=["All"])
    assert "MessageAttributes" not in message
    envelope = json.loads(message["Body"])
    assert envelope["Type"] == "Notification"
    assert envelope["MessageId"] == answer["MessageId"]
    assert envelope["TopicArn"] == topic
    assert envelope["Subject"] == "news"
    assert envelope["Message"] == 'say "hi"'
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", envelope["Timestamp"])
    assert envelope["MessageAttributes"] == {
        "language": {"Type": "String", "Value": "en"},
        "size": {"Type": "Number", "Value": "5"},
        "image": {"Type": "Binary", "Value": "AQI="},
    }
    assert envelope["SigningCertURL"] == f"{sns.url}/SimpleNotificationService.pem"
    assert subscription.replace(":", "%3A") in envelope["UnsubscribeURL"]


def test_raw_messages_keep_their_attributes_and_lose_the_subject(sns: Sns, topic: str) -> None:
    queue = sns.raw(topic)

    sns.publish(topic, "hello", Subject="news", MessageAttributes={"size": text("5", "Number")})

    [message] = sns.aws.receive(queue, MessageAttributeNames=["All"])
    assert message["MessageAttributes"] == {"size": text("5", "Number")}


def test_a_message_may_have_a_text_for_each_protocol(sns: Sns, topic: str) -> None:
    queue = sns.raw(topic)

    for texts in ({"default": "d", "sqs": "for queues"}, {"default": "d", "email": "e"}):
        sns.publish(topic, json.dumps(texts), MessageStructure="json")

    assert sns.aws.bodies(queue) == ["for queues", "d"]


def test_a_batch_reports_each_entry(sns: Sns, topic: str) -> None:
    queue = sns.raw(topic)

    answer = sns.client.publish_batch(
        TopicArn=topic,
        PublishBatchRequestEntries=[
            {"Id": "good", "Message": "a"},
            {"Id": "bad", "Message": "b", "Subject": "two\nlines"},
            {"Id": "other", "Message": "c", "MessageAttributes": {"x": text("y")}},
        ],
    )

    assert [entry["Id"] for entry in answer["Successful"]] == ["good", "other"]
    [failed] = answer["Failed"]
    assert (failed["Id"], failed["Code"], failed["SenderFault"]) == (
        "bad",
        "InvalidParameter",
        True,
    )
    assert sns.aws.bodies(queue) == ["a", "c"]


@pytest.mark.parametrize(
    ("ids", "code"),
    [
        (["a", "a"], "BatchEntryIdsNotDistinct"),
        (["a b"], "InvalidBatchEntryId"),
        (list("abcdefghijk"), "TooManyEntriesInBatchRequest"),
        ([], "EmptyBatchRequest"),
    ],
)
def test_a_malformed_batch_is_rejected(sns: Sns, topic: str, ids: list[str], code: str) -> None:
    entries = [{"Id": one, "Message": "m"} for one in ids]
    with refused(code):
        sns.client.publish_batch(TopicArn=topic, PublishBatchRequestEntries=entries)


@pytest.mark.parametrize(
    ("fields", "code", "part"),
    [
        ({"Message": ""}, "InvalidParameter", "Empty message"),
        ({"Message": "x" * (256 * 1024 + 1)}, "InvalidParameter", "Message too long"),
        ({"Subject": "x" * 101}, "InvalidParameter", "Subject"),
        ({"MessageStructure": "json"}, "InvalidParameter", "failed to parse"),
        (
            {"MessageStructure": "json", "Message": '{"sqs": "x"}'},
            "InvalidParameter",
            "No default entry",
        ),
        (
            {"MessageAttributes": {"x": text("y", "Text")}},
            "ParameterValueInvalid",
            "message attribute type",
        ),
        ({"MessageDeduplicationId": "x"}, "InvalidParameter", "not valid for this topic type"),
        ({"MessageGroupId": "a b"}, "InvalidParameter", "alphanumeric"),
    ],
)
def test_an_invalid_message_is_rejected(
    sns: Sns, topic: str, fields: dict, code: str, part: str
) -> None:
    with refused(code, part):
        sns.client.publish(**{"TopicArn": topic, "Message": "m", **fields})


def test_a_topic_that_does_not_exist_is_not_found(sns: Sns, topic: str) -> None:
    with refused("NotFound", "Topic does not exist"):
        sns.publish(f"{topic}-not")


# --- FIFO ---


def test_a_fifo_topic_keeps_order_and_drops_duplicates(sns: Sns, aws: Aws) -> None:
    topic, line, standard = sns.fifo_topic(), aws.make_fifo(), aws.make()
    for queue in (line, standard):
        sns.subscribe(topic, queue, RawMessageDelivery="true")

    first = sns.publish(topic, "a", MessageGroupId="g")
    again = sns.publish(topic, "a", MessageGroupId="h")
    other = sns.publish(topic, "b", MessageGroupId="g")

    assert aws.bodies(line) == ["a", "b"]
    assert aws.bodies(standard) == ["a", "b"]
    assert (again["MessageId"], again["SequenceNumber"]) == (
        first["MessageId"],
        first["SequenceNumber"],
    )
    assert len(first["SequenceNumber"]) == 20
    assert other["SequenceNumber"] > first["SequenceNumber"]


@pytest.mark.both_stores
def test_concurrent_publishes_are_in_the_same_order_everywhere(sns: Sns, aws: Aws) -> None:
    topic, lines = sns.fifo_topic(), [aws.make_fifo() for _ in range(2)]
    for line in lines:
        sns.subscribe(topic, line, RawMessageDelivery="true")

    def publish(n: int) -> str:
        # Each number is published twice.
        return str(sns.publish(topic, str(n // 2), MessageGroupId="g")["SequenceNumber"])

    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(publish, range(16)))

    by_number = [text for _, text in sorted({(n, str(i // 2)) for i, n in enumerate(numbers)})]
    assert [aws.bodies(line) for line in lines] == [by_number, by_number]
    assert len(by_number) == 8


def test_groups_may_have_separate_deduplication_ids(sns: Sns, aws: Aws) -> None:
    topic = sns.fifo_topic(FifoThroughputScope="MessageGroup")
    line = aws.make_fifo(DeduplicationScope="messageGroup")
    sns.subscribe(topic, line, RawMessageDelivery="true")

    for group in ("g", "h", "g"):
        sns.publish(topic, "a", MessageGroupId=group, MessageDeduplicationId="1")

    assert aws.bodies(line) == ["a", "a"]


def test_a_fifo_topic_needs_groups_and_deduplication_ids(sns: Sns) -> None:
    topic = sns.fifo_topic(ContentBasedDeduplication="false")

    with refused("InvalidParameter", "MessageGroupId parameter is required"):
        sns.publish(topic)
    with refused("InvalidParameter", "ContentBasedDeduplication enabled"):
        sns.publish(topic, MessageGroupId="g")


# --- filters ---


def test_a_filter_on_attributes_decides_which_messages_a_queue_gets(sns: Sns, topic: str) -> None:
    policy = json.dumps({"region": [{"prefix": "eu-"}], "price": [{"numeric": [">=", 100]}]})
    queue = sns.raw(topic, FilterPolicy=policy)

    for region, price in (("eu-west", "100"), ("eu-west", "99"), ("us-east", "100")):
        attributes = {"region": text(region), "price": text(price, "Number")}
        sns.publish(topic, f"{region} {price}", MessageAttributes=attributes)
    sns.publish(topic, "without")

    assert sns.aws.bodies(queue) == ["eu-west 100"]


def test_a_filter_on_the_body_looks_into_the_message(sns: Sns, topic: str) -> None:
    policy = json.dumps({"order": {"state": ["paid"]}})
    queue = sns.raw(topic, FilterPolicy=policy, FilterPolicyScope="MessageBody")

    for state in ("paid", "open"):
        sns.publish(topic, json.dumps({"order": {"state": state}}))
    sns.publish(topic, "no JSON")

    assert sns.aws.bodies(queue) == ['{"order": {"state": "paid"}}']


def test_a_changed_filter_applies_to_the_next_message(sns: Sns, topic: str, queue: str) -> None:
    subscription = sns.subscribe(topic, queue, RawMessageDelivery="true")
    sns.publish(topic, "a")

    def set_filter(policy: str) -> None:
        sns.client.set_subscription_attributes(
            SubscriptionArn=subscription, AttributeName="FilterPolicy", AttributeValue=policy
        )

    set_filter('{"x": ["y"]}')
    sns.publish(topic, "b")
    set_filter("{}")
    sns.publish(topic, "c")

    assert sns.aws.bodies(queue) == ["a", "c"]
