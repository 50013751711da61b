"""Batches: what fails the whole request, and what fails only its entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.edge.sqs.aws import Aws, refused

MIB = 1_048_576
OLD = "AWS.SimpleQueueService."

Batch = Callable[[list[dict[str, Any]]], Any]
KINDS = ("SendMessage", "DeleteMessage", "ChangeMessageVisibility")


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def batch(aws: Aws, queue: str, kind: str) -> Batch:
    """Send entries in any of the three batches; required fields are filled in."""
    operations: dict[str, tuple[Any, dict[str, Any]]] = {
        "SendMessage": (aws.client.send_message_batch, {"MessageBody": "x"}),
        "DeleteMessage": (aws.client.delete_message_batch, {"ReceiptHandle": "x"}),
        "ChangeMessageVisibility": (
            aws.client.change_message_visibility_batch,
            {"ReceiptHandle": "x", "VisibilityTimeout": 1},
        ),
    }
    operation, needs = operations[kind]
    return lambda entries: operation(
        QueueUrl=queue, Entries=[{**needs, **entry} for entry in entries]
    )


def ids(entries: list[dict[str, Any]]) -> list[str]:
    return [entry["Id"] for entry in entries]


# --- all three ---


def test_a_batch_has_entries(batch: Batch, kind: str) -> None:
    text = f"There should be at least one {kind}BatchRequestEntry in the request."
    with refused(f"{OLD}EmptyBatchRequest", text) as refusal:
        batch([])
    assert refusal.kind == "EmptyBatchRequest"


def test_a_batch_has_at_most_ten_entries(batch: Batch) -> None:
    with refused(
        f"{OLD}TooManyEntriesInBatchRequest",
        "Maximum number of entries per request are 10. You have sent 11.",
    ) as refusal:
        batch([{"Id": f"id_{n}"} for n in range(11)])
    assert refusal.kind == "TooManyEntriesInBatchRequest"


def test_ids_of_entries_differ(batch: Batch) -> None:
    with refused(f"{OLD}BatchEntryIdsNotDistinct", "Id id_2 repeated.") as refusal:
        batch([{"Id": i} for i in ("id_1", "id_2", "id_3", "id_2", "id_1")])
    assert refusal.kind == "BatchEntryIdsNotDistinct"


@pytest.mark.parametrize("wrong", ["", "a b", "a.b", "ä", "i" * 81])
def test_ids_of_entries_have_their_characters(batch: Batch, wrong: str) -> None:
    with refused(
        f"{OLD}InvalidBatchEntryId",
        "A batch entry id can only contain alphanumeric characters, hyphens and underscores. "
        "It can be at most 80 letters long.",
    ) as refusal:
        batch([{"Id": "fine"}, {"Id": wrong}])
    assert refusal.kind == "InvalidBatchEntryId"


# --- send ---


def test_a_batch_of_ten_is_sent_in_its_order(aws: Aws, queue: str) -> None:
    bodies = [f"body {n}" for n in range(10)]

    answer = aws.send_batch(queue, *({"MessageBody": body} for body in bodies))

    assert ids(answer["Successful"]) == [str(n) for n in range(10)]
    assert "Failed" not in answer
    assert answer["Successful"][0].keys() == {"Id", "MessageId", "MD5OfMessageBody"}
    got = aws.receive(queue)
    assert [m["Body"] for m in got] == bodies
    assert [m["MessageId"] for m in got] == [e["MessageId"] for e in answer["Successful"]]


def test_entries_fail_on_their_own(aws: Aws) -> None:
    queue = aws.make(MaximumMessageSize=1024)
    attributes = {"x": {"DataType": "Nonsense", "StringValue": "v"}}

    answer = aws.send_batch(
        queue,
        {"Id": "good", "MessageBody": "good"},
        {"Id": "too_big", "MessageBody": "x" * 1025},
        {"Id": "characters", "MessageBody": "\0"},
        {"Id": "delay", "MessageBody": "x", "DelaySeconds": 901},
        {"Id": "attributes", "MessageBody": "x", "MessageAttributes": attributes},
        {"Id": "deduplication", "MessageBody": "x", "MessageDeduplicationId": "d"},
        {"Id": "group", "MessageBody": "x", "MessageGroupId": "with blank"},
        {"Id": "also_good", "MessageBody": "also good"},
    )

    assert ids(answer["Successful"]) == ["good", "also_good"]
    failed = {entry["Id"]: entry for entry in answer["Failed"]}
    assert {i: entry["Code"] for i, entry in failed.items()} == {
        "too_big": "InvalidParameterValue",
        "characters": "InvalidMessageContents",
        "delay": "InvalidParameterValue",
        "attributes": "InvalidParameterValue",
        "deduplication": "InvalidParameterValue",
        "group": "InvalidParameterValue",
    }
    assert all(entry["SenderFault"] is True for entry in failed.values())
    assert failed["too_big"]["Message"] == (
        "One or more parameters cannot be validated. Reason: Message must be shorter than 1024 "
        "bytes."
    )
    assert aws.bodies(queue) == ["good", "also good"]


def test_a_batch_in_which_everything_fails_is_still_answered(aws: Aws, queue: str) -> None:
    answer = aws.send_batch(queue, {"MessageBody": "\0"})

    assert ids(answer["Failed"]) == ["0"]
    assert "Successful" not in answer


def test_a_whole_batch_has_one_mebibyte(aws: Aws) -> None:
    queue = aws.make(MaximumMessageSize=1024)  # the total is checked first, not against this
    half = {"MessageBody": "x" * (MIB // 2)}

    with refused(
        f"{OLD}BatchRequestTooLong",
        "Batch requests cannot be longer than 1048576 bytes. You have sent 1048577 bytes.",
    ) as refusal:
        aws.send_batch(queue, half, half, {"MessageBody": "x"})
    assert refusal.kind == "BatchRequestTooLong"

    fits = aws.make()
    attributes = {"name": {"DataType": "String", "StringValue": "12"}}  # 12 bytes in total
    answer = aws.send_batch(
        fits, half, {"MessageBody": "x" * (MIB // 2 - 12), "MessageAttributes": attributes}
    )
    assert len(answer["Successful"]) == 2


def test_entries_carry_all_that_a_message_can(aws: Aws, queue: str) -> None:
    attributes = {"k": {"DataType": "String", "StringValue": "x"}}
    system = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1"}}

    answer = aws.send_batch(
        queue,
        {
            "MessageBody": "x",
            "MessageAttributes": attributes,
            "MessageSystemAttributes": system,
            "MessageGroupId": "g",
        },
        {"MessageBody": "late", "DelaySeconds": 9},
    )

    first = answer["Successful"][0]
    assert first["MD5OfMessageAttributes"] == "a45daa70926828a2f0a1db3418e6feb4"
    assert first["MD5OfMessageSystemAttributes"]
    got = aws.receive_one(queue, MessageAttributeNames=["k"], MessageSystemAttributeNames=["All"])
    assert got["MessageAttributes"] == attributes
    assert got["Attributes"]["AWSTraceHeader"] == "Root=1"
    assert got["Attributes"]["MessageGroupId"] == "g"
    assert aws.counts(queue) == (0, 1, 1)


def test_a_body_is_needed_in_every_entry(aws: Aws, queue: str) -> None:
    with refused("MissingParameter"):
        aws.send_batch(queue, {"MessageBody": "x"}, {"MessageBody": ""})

    assert aws.counts(queue) == (0, 0, 0)


def test_a_fifo_batch_without_a_group_is_refused_as_a_whole(aws: Aws, line: str) -> None:
    with refused("InvalidParameterValue"):
        aws.send_batch(
            line, {"MessageBody": "good", "MessageGroupId": "g"}, {"MessageBody": "no group"}
        )

    assert aws.counts(line) == (0, 0, 0)


def test_a_fifo_batch_without_deduplication_is_refused_as_a_whole(aws: Aws) -> None:
    line = aws.make_fifo(ContentBasedDeduplication="false")
    good = {"MessageBody": "good", "MessageGroupId": "g", "MessageDeduplicationId": "d"}

    with refused(
        "InvalidParameterValue",
        "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId "
        "provided explicitly",
    ):
        aws.send_batch(line, good, {"MessageBody": "no id", "MessageGroupId": "g"})

    assert aws.counts(line) == (0, 0, 0)


@pytest.mark.parametrize("parameter", ["MessageGroupId", "MessageDeduplicationId"])
def test_a_bad_id_fails_only_its_own_entry_of_a_fifo_batch(
    aws: Aws, line: str, parameter: str
) -> None:
    bad = {"MessageBody": "bad", "MessageGroupId": "g", parameter: "with space"}

    answer = aws.send_batch(line, bad, {"MessageBody": "good", "MessageGroupId": "g"})

    assert [entry["Code"] for entry in answer["Failed"]] == ["InvalidParameterValue"]
    assert aws.bodies(line) == ["good"]


def test_a_fifo_batch_is_numbered_in_its_order(aws: Aws, line: str) -> None:
    answer = aws.send_batch(
        line, *({"MessageBody": f"b{n}", "MessageGroupId": "g"} for n in range(3))
    )

    numbers = [int(entry["SequenceNumber"]) for entry in answer["Successful"]]
    assert numbers == sorted(set(numbers))
    assert aws.bodies(line) == ["b0", "b1", "b2"]


# --- delete, change visibility ---


def test_messages_are_deleted_together(aws: Aws, queue: str) -> None:
    aws.send_all(queue, "a", "b", "c")
    handles = [m["ReceiptHandle"] for m in aws.receive(queue)]

    answer = aws.client.delete_message_batch(
        QueueUrl=queue,
        Entries=[
            {"Id": "a", "ReceiptHandle": handles[0]},
            {"Id": "wrong", "ReceiptHandle": "nonsense"},
            {"Id": "b", "ReceiptHandle": handles[1]},
        ],
    )

    assert ids(answer["Successful"]) == ["a", "b"]
    assert answer["Failed"] == [
        {
            "Id": "wrong",
            "SenderFault": True,
            "Code": "ReceiptHandleIsInvalid",
            "Message": 'The input receipt handle "nonsense" is not a valid receipt handle.',
        }
    ]
    assert aws.counts(queue) == (0, 1, 0)


def test_a_message_deleted_twice_in_a_batch_is_deleted(aws: Aws, queue: str) -> None:
    aws.send(queue)
    handle = aws.handle(queue)

    answer = aws.client.delete_message_batch(
        QueueUrl=queue,
        Entries=[{"Id": i, "ReceiptHandle": handle} for i in ("once", "twice")],
    )

    assert ids(answer["Successful"]) == ["once", "twice"]
    assert aws.counts(queue) == (0, 0, 0)


def test_visibilities_are_changed_together(aws: Aws, queue: str) -> None:
    aws.send_all(queue, "a", "b", "c")
    handles = [m["ReceiptHandle"] for m in aws.receive(queue)]

    answer = aws.client.change_message_visibility_batch(
        QueueUrl=queue,
        Entries=[
            {"Id": "a", "ReceiptHandle": handles[0], "VisibilityTimeout": 0},
            {"Id": "range", "ReceiptHandle": handles[1], "VisibilityTimeout": 43_201},
            {"Id": "wrong", "ReceiptHandle": "nonsense", "VisibilityTimeout": 1},
            {"Id": "c", "ReceiptHandle": handles[2], "VisibilityTimeout": 0},
        ],
    )

    assert ids(answer["Successful"]) == ["a", "c"]
    assert {entry["Id"]: entry["Code"] for entry in answer["Failed"]} == {
        "range": "InvalidParameterValue",
        "wrong": "ReceiptHandleIsInvalid",
    }
    assert aws.bodies(queue) == ["a", "c"]
