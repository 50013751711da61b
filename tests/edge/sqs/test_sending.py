"""SendMessage: what is stored, what is returned, and the limits."""

from __future__ import annotations

import hashlib
import json
import uuid
from typing import Any

import httpx
import pytest

from tests.clocks import ManualClock
from tests.edge.sqs.aws import Aws, arn_of, refused

MIB = 1_048_576
TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"


def a_string(value: str = "v") -> dict[str, str]:
    return {"DataType": "String", "StringValue": value}


def md5(text: str) -> str:
    return hashlib.md5(text.encode()).hexdigest()


def test_a_message_comes_out_as_it_went_in(aws: Aws, queue: str) -> None:
    sent = aws.send(queue, "héllo ☃ 🎈")

    assert str(uuid.UUID(sent["MessageId"])) == sent["MessageId"]
    assert sent["MD5OfMessageBody"] == md5("héllo ☃ 🎈")
    assert sent.keys() == {"MessageId", "MD5OfMessageBody", "ResponseMetadata"}
    got = aws.receive_one(queue)
    assert got.keys() == {"MessageId", "ReceiptHandle", "MD5OfBody", "Body"}
    assert (got["MessageId"], got["Body"]) == (sent["MessageId"], "héllo ☃ 🎈")
    assert got["MD5OfBody"] == sent["MD5OfMessageBody"]


@pytest.mark.parametrize(
    "body",
    [
        " ",
        "\t\n\r",
        "a\r\nb",
        '{"json": ["in", "text"]}',
        '"quoted"',
        "back\\slash \\u0041",
        "<xml>&amp;</xml>",
        "\x7f\x85\ud7ff\ue000\ufffd\U00010000\U0010ffff",
    ],
)
def test_any_text_that_xml_can_hold_is_a_body(aws: Aws, queue: str, body: str) -> None:
    sent = aws.send(queue, body)

    got = aws.receive_one(queue)
    assert got["Body"] == body
    assert got["MD5OfBody"] == sent["MD5OfMessageBody"] == md5(body)


@pytest.mark.parametrize("wrong", ["\0", "a\x01", "\x1f", "\ufffe", "\uffff", "\x0b"])
def test_other_characters_are_refused(aws: Aws, queue: str, wrong: str) -> None:
    with refused("InvalidMessageContents") as refusal:
        aws.send(queue, f"text {wrong}")

    assert refusal.kind == "InvalidMessageContents"
    assert aws.counts(queue) == (0, 0, 0)


def test_half_a_character_is_refused(http: httpx.Client, queue: str) -> None:
    headers = {
        "X-Amz-Target": "AmazonSQS.SendMessage",
        "Content-Type": "application/x-amz-json-1.0",
    }
    body = f'{{"QueueUrl": "{queue}", "MessageBody": "\\ud800"}}'

    answer = http.post("/", content=body, headers=headers)

    assert answer.status_code == 400
    assert answer.json()["__type"] == "com.amazonaws.sqs#InvalidMessageContents"


def test_a_body_is_needed(aws: Aws, queue: str) -> None:
    text = "The request must contain the parameter MessageBody."
    with refused("MissingParameter", text):
        aws.send(queue, "")
    with refused("MissingParameter", text):
        aws.loose.send_message(QueueUrl=queue)


# --- size ---


@pytest.mark.parametrize("character", ["x", "ä", "\n", "☃"])
def test_a_message_of_exactly_one_mebibyte_fits(aws: Aws, queue: str, character: str) -> None:
    size = len(character.encode())
    body = character * (MIB // size) + "x" * (MIB % size)

    aws.send(queue, body)

    assert aws.receive_one(queue)["Body"] == body
    with refused(
        "InvalidParameterValue",
        "One or more parameters are invalid. Reason: Message must be shorter than 1048576 bytes.",
    ):
        aws.send(queue, body + "x")


def test_a_queue_may_have_a_limit_of_its_own(aws: Aws) -> None:
    queue = aws.make(MaximumMessageSize=1024)

    aws.send(queue, "x" * 1024)

    with refused(
        "InvalidParameterValue",
        "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes.",
    ):
        aws.send(queue, "x" * 1025)


def test_names_types_and_values_of_attributes_count_and_system_attributes_do_not(aws: Aws) -> None:
    queue = aws.make(MaximumMessageSize=1024)
    attributes = {"näme": {"DataType": "Binary.x", "BinaryValue": b"\0" * 100}}
    size = len("näme".encode()) + len("Binary.x") + 100
    system = {"AWSTraceHeader": a_string(TRACE)}

    def send(body: str) -> None:
        aws.send(queue, body, MessageAttributes=attributes, MessageSystemAttributes=system)

    send("x" * (1024 - size))

    with refused("InvalidParameterValue"):
        send("x" * (1025 - size))


def test_ten_large_attributes_fit(aws: Aws, queue: str) -> None:
    attributes: dict[str, Any] = {
        f"a{n}": {"DataType": "Binary", "BinaryValue": bytes([n]) * 100_000} for n in range(5)
    }
    attributes |= {f"b{n}": a_string(chr(97 + n) * 100_000) for n in range(5)}

    aws.send(queue, "small", MessageAttributes=attributes)

    got = aws.receive_one(queue, MessageAttributeNames=["All"])
    assert got["MessageAttributes"] == attributes
    eleven = {f"a{n}": a_string() for n in range(11)}
    with refused(
        "InvalidParameterValue",
        "Number of message attributes [11] exceeds the allowed maximum [10].",
    ):
        aws.send(queue, MessageAttributes=eleven)


# --- attributes ---


def test_attributes_come_back_with_their_types(aws: Aws, queue: str) -> None:
    attributes: dict[str, Any] = {
        "text": a_string("väl\n"),
        "number": {"DataType": "Number", "StringValue": "-1.50e3"},
        "binary": {"DataType": "Binary", "BinaryValue": bytes(range(256))},
        "labelled": {"DataType": "Binary.png", "BinaryValue": b"png"},
        "own": {"DataType": "String.custom", "StringValue": "x"},
        "sqs.types": a_string("a name like any other"),
        "ønske": a_string(),
    }

    sent = aws.send(queue, MessageAttributes=attributes)

    got = aws.receive_one(queue, MessageAttributeNames=["All"])
    assert got["MessageAttributes"] == attributes
    assert got["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"]


def test_the_digest_of_attributes_is_the_one_that_sdks_compute(aws: Aws, queue: str) -> None:
    number = {"timestamp": {"DataType": "Number", "StringValue": "1493147359900"}}

    sent = aws.send(queue, MessageAttributes=number)

    assert sent["MD5OfMessageAttributes"] == "235c5c510d26fb653d073faed50ae77c"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AWS.x", a_string()),
        ("amazon.x", a_string()),
        (".x", a_string()),
        ("x.", a_string()),
        ("a..b", a_string()),
        ("a b", a_string()),
        ("n" * 257, a_string()),
        ("", a_string()),
        ("x", a_string("")),
        ("x", a_string("\0")),
        ("x", {"DataType": "Text", "StringValue": "v"}),
        ("x", {"DataType": "", "StringValue": "v"}),
        ("x", {"DataType": "String." + "x" * 250, "StringValue": "v"}),
        ("x", {"DataType": "Number", "StringValue": "many"}),
        ("x", {"DataType": "Number", "StringValue": "1e127"}),
        ("x", {"DataType": "Number", "StringValue": "1" * 39}),
        ("x", {"DataType": "Binary", "BinaryValue": b""}),
        ("x", {"DataType": "Binary", "StringValue": "v"}),
    ],
)
def test_attributes_that_break_the_rules_are_refused(
    aws: Aws, queue: str, name: str, value: dict
) -> None:
    with refused("InvalidParameterValue"):
        aws.send(queue, MessageAttributes={name: value})

    assert aws.receive(queue) == []


def test_the_words_for_an_attribute_without_value_or_type(aws: Aws, queue: str) -> None:
    with refused(
        "InvalidParameterValue",
        "Message (user) attribute 'x' must contain a non-empty value of type 'String'.",
    ):
        aws.send(queue, MessageAttributes={"x": a_string("")})
    with refused(
        "InvalidParameterValue",
        "The message attribute 'x' has an invalid message attribute type, the set of supported "
        "type prefixes is Binary, Number, and String.",
    ):
        aws.send(queue, MessageAttributes={"x": {"DataType": "Text", "StringValue": "v"}})


def test_lists_of_values_are_not_supported_yet_as_with_aws(aws: Aws, queue: str) -> None:
    with refused("AWS.SimpleQueueService.UnsupportedOperation"):
        aws.send(
            queue,
            MessageAttributes={"x": {"DataType": "String", "StringListValues": ["a"]}},
        )


# --- the trace header ---


def test_a_trace_header_is_a_system_attribute(aws: Aws, queue: str) -> None:
    sent = aws.send(queue, MessageSystemAttributes={"AWSTraceHeader": a_string(TRACE)})

    assert sent["MD5OfMessageSystemAttributes"] == "5ae4d5d7636402d80f4eb6d213245a88"
    got = aws.receive_one(queue, MessageSystemAttributeNames=["AWSTraceHeader"])
    assert got["Attributes"] == {"AWSTraceHeader": TRACE}
    with refused("InvalidParameterValue"):
        aws.loose.send_message(
            QueueUrl=queue, MessageBody="x", MessageSystemAttributes={"Other": a_string()}
        )


def test_a_trace_header_of_the_request_will_do(http: httpx.Client, aws: Aws, queue: str) -> None:
    def send(trace: str) -> None:
        answer = http.post(
            "/",
            content=json.dumps({"QueueUrl": queue, "MessageBody": "x"}),
            headers={"X-Amz-Target": "AmazonSQS.SendMessage", "X-Amzn-Trace-Id": trace},
        )
        assert answer.status_code == 200
        assert "MD5OfMessageSystemAttributes" not in answer.json()

    send(TRACE)
    send("x" * 2000)  # not worth losing a message for

    first, second = aws.receive(queue, MessageSystemAttributeNames=["AWSTraceHeader"])
    assert first["Attributes"] == {"AWSTraceHeader": TRACE}
    assert "Attributes" not in second


# --- delays ---


def test_a_delayed_message_cannot_be_received_before_its_time(
    aws: Aws, queue: str, clock: ManualClock
) -> None:
    aws.send(queue, DelaySeconds=900)
    assert aws.counts(queue) == (0, 0, 1)

    clock.advance(seconds=899)
    assert aws.receive(queue) == []
    clock.advance(seconds=1)

    assert aws.counts(queue) == (1, 0, 0)
    assert aws.bodies(queue) == ["hello"]


def test_a_delay_of_its_own_takes_the_place_of_the_queues(aws: Aws, clock: ManualClock) -> None:
    queue = aws.make(DelaySeconds=10)
    aws.send(queue, "at once", DelaySeconds=0)
    aws.send(queue, "later", DelaySeconds=20)
    aws.send(queue, "as the queue says")

    assert aws.bodies(queue) == ["at once"]
    clock.advance(seconds=10)
    assert aws.bodies(queue) == ["as the queue says"]
    clock.advance(seconds=10)
    assert aws.bodies(queue) == ["later"]


def test_a_new_delay_of_a_queue_is_for_new_messages(aws: Aws, clock: ManualClock) -> None:
    queue = aws.make(DelaySeconds=10)
    aws.send(queue, "before")

    aws.set(queue, DelaySeconds=600)
    aws.send(queue, "after")

    clock.advance(seconds=10)
    assert aws.bodies(queue) == ["before"]


@pytest.mark.parametrize("wrong", [-1, 901])
def test_delays_have_their_range(aws: Aws, queue: str, wrong: int) -> None:
    with refused(
        "InvalidParameterValue",
        f"Value {wrong} for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 "
        "and <= 900.",
    ):
        aws.send(queue, DelaySeconds=wrong)


# --- groups on plain queues ---


def test_a_group_on_a_plain_queue_is_a_label(aws: Aws, queue: str) -> None:
    sent = aws.send(queue, "one", MessageGroupId="tenant!#~")
    aws.send(queue, "two", MessageGroupId="tenant!#~")

    assert "SequenceNumber" not in sent
    got = aws.receive(queue, MessageSystemAttributeNames=["All"])
    assert [m["Body"] for m in got] == ["one", "two"]
    assert [m["Attributes"]["MessageGroupId"] for m in got] == ["tenant!#~"] * 2
    assert got[0]["Attributes"].keys().isdisjoint({"SequenceNumber", "MessageDeduplicationId"})


@pytest.mark.parametrize("wrong", ["", " ", "a b", "g" * 129, "ä"])
def test_group_ids_have_their_characters(aws: Aws, queue: str, wrong: str) -> None:
    with refused(
        "InvalidParameterValue",
        f"Value {wrong} for parameter MessageGroupId is invalid. Reason: MessageGroupId can only "
        "include alphanumeric and punctuation characters. 1 to 128 in length.",
    ):
        aws.send(queue, MessageGroupId=wrong)


def test_a_plain_queue_takes_no_deduplication_id(aws: Aws, queue: str) -> None:
    with refused(
        "InvalidParameterValue",
        "Value x for parameter MessageDeduplicationId is invalid. Reason: The request include "
        "parameter that is not valid for this queue type.",
    ):
        aws.send(queue, MessageDeduplicationId="x")


def test_the_sent_message_knows_its_queue(aws: Aws, queue: str) -> None:
    aws.send(queue)

    assert aws.attribute(queue, "QueueArn") == arn_of(queue)
    assert aws.counts(queue) == (1, 0, 0)
