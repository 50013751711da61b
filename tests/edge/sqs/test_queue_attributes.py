"""Queue attributes: which can be set, which are returned, and which are rejected."""

from __future__ import annotations

import json
from contextlib import nullcontext

import pytest

from tests.clocks import ManualClock
from tests.edge.api import a_name
from tests.edge.sqs.aws import Aws, arn_of, name_of, refused

ALWAYS = {
    "DelaySeconds": "0",
    "MaximumMessageSize": "1048576",
    "MessageRetentionPeriod": "345600",
    "ReceiveMessageWaitTimeSeconds": "0",
    "VisibilityTimeout": "30",
    "SqsManagedSseEnabled": "true",
    "ApproximateNumberOfMessages": "0",
    "ApproximateNumberOfMessagesNotVisible": "0",
    "ApproximateNumberOfMessagesDelayed": "0",
}
FIFO_TOO = {
    "FifoQueue": "true",
    "ContentBasedDeduplication": "false",
    "DeduplicationScope": "queue",
    "FifoThroughputLimit": "perQueue",
}


def test_all_attributes_of_a_plain_queue(aws: Aws, queue: str, clock: ManualClock) -> None:
    now = str(clock.now() // 1000)

    assert aws.attributes(queue) == {
        **ALWAYS,
        "QueueArn": arn_of(queue),
        "CreatedTimestamp": now,
        "LastModifiedTimestamp": now,
    }


def test_all_attributes_of_a_fifo_queue(aws: Aws) -> None:
    line = aws.make_fifo(ContentBasedDeduplication="false")

    assert aws.attributes(line).items() >= {**ALWAYS, **FIFO_TOO}.items()


def test_only_requested_attributes_are_returned(aws: Aws, queue: str) -> None:
    assert aws.attributes(queue, "QueueArn") == {"QueueArn": arn_of(queue)}
    assert "Attributes" not in aws.client.get_queue_attributes(QueueUrl=queue)
    assert "Attributes" not in aws.client.get_queue_attributes(
        QueueUrl=queue, AttributeNames=["Policy", "FifoQueue"]
    )


def test_an_unknown_attribute_cannot_be_asked_for(aws: Aws, queue: str) -> None:
    with refused("InvalidAttributeName", "Unknown Attribute Nonsense.") as refusal:
        aws.attributes(queue, "All", "Nonsense")
    assert refusal.kind == "InvalidAttributeName"


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("DelaySeconds", 0, 900),
        ("MaximumMessageSize", 1024, 1_048_576),
        ("MessageRetentionPeriod", 60, 1_209_600),
        ("ReceiveMessageWaitTimeSeconds", 0, 20),
        ("VisibilityTimeout", 0, 43_200),
        ("KmsDataKeyReusePeriodSeconds", 60, 86_400),
    ],
)
def test_numbers_have_their_ranges(aws: Aws, queue: str, name: str, least: int, most: int) -> None:
    for value in (least, most):
        aws.set(queue, **{name: value})
        assert aws.attribute(queue, name) == str(value)
        assert aws.attribute(aws.make_named(a_name(), **{name: value}), name) == str(value)

    # A retention below 60 s is for tests, and allowed unless limits are strict.
    below = 0 if name == "MessageRetentionPeriod" else least - 1
    for wrong in (below, most + 1, "1800.0", "abc", "", " 60", "٣"):
        with refused("InvalidAttributeValue", f"Invalid value for the parameter {name}."):
            aws.set(queue, **{name: wrong})
        with refused("InvalidAttributeValue") as refusal:
            aws.make_named(a_name(), **{name: wrong})
        assert refusal.kind == "InvalidAttributeValue"
    assert aws.attribute(queue, name) == str(most)


def test_a_change_updates_the_timestamp(aws: Aws, queue: str, clock: ManualClock) -> None:
    created = aws.attribute(queue, "CreatedTimestamp")
    clock.advance(seconds=90)

    aws.set(queue, VisibilityTimeout=5, DelaySeconds=7)

    shown = aws.attributes(queue)
    assert (shown["VisibilityTimeout"], shown["DelaySeconds"]) == ("5", "7")
    assert shown["CreatedTimestamp"] == created
    assert shown["LastModifiedTimestamp"] == str(clock.now() // 1000)


def test_computed_attributes_of_a_queue_cannot_be_set(aws: Aws, queue: str) -> None:
    for name in ("QueueArn", "ApproximateNumberOfMessages", "CreatedTimestamp"):
        with refused("InvalidAttributeName", f"Unknown Attribute {name}."):
            aws.set(queue, **{name: "1"})
        with refused("InvalidAttributeName"):
            aws.make_named(a_name(), **{name: "1"})


def test_one_wrong_attribute_keeps_the_others_from_being_set(aws: Aws, queue: str) -> None:
    with refused("InvalidAttributeName"):
        aws.set(queue, VisibilityTimeout=5, Nonsense="x")

    assert aws.attribute(queue, "VisibilityTimeout") == "30"


def test_attributes_are_needed_to_set_some(aws: Aws, queue: str) -> None:
    with refused("MissingParameter", "The request must contain the parameter Attributes."):
        aws.loose.set_queue_attributes(QueueUrl=queue)


def test_booleans_are_returned_in_lower_case(aws: Aws, line: str) -> None:
    aws.set(line, ContentBasedDeduplication="True", SqsManagedSseEnabled="FALSE")

    shown = aws.attributes(line)
    assert shown["ContentBasedDeduplication"] == "true"
    assert shown["SqsManagedSseEnabled"] == "false"
    with refused("InvalidAttributeValue"):
        aws.set(line, ContentBasedDeduplication="yes")


# --- queue types ---


@pytest.mark.parametrize("value", ["true", "false"])
def test_a_plain_queue_knows_no_fifo_attributes(aws: Aws, queue: str, value: str) -> None:
    for name in ("FifoQueue", "ContentBasedDeduplication"):
        with refused("InvalidAttributeName", f"Unknown Attribute {name}."):
            aws.set(queue, **{name: value})
    with refused("InvalidAttributeName", "Unknown Attribute ContentBasedDeduplication."):
        aws.make_named(a_name(), ContentBasedDeduplication=value)
    with refused("InvalidAttributeName", "Unknown Attribute FifoQueue."):
        aws.make_named(a_name(), FifoQueue="false")


def test_some_fifo_attributes_are_refused_in_words_of_their_own(aws: Aws, queue: str) -> None:
    for name, value in (("DeduplicationScope", "queue"), ("FifoThroughputLimit", "perQueue")):
        text = f"You can specify the {name} only when FifoQueue is set to true."
        with refused("InvalidAttributeName", text):
            aws.set(queue, **{name: value})
        with refused("InvalidAttributeName", text):
            aws.make_named(a_name(), **{name: value})


def test_the_type_of_a_queue_stays(aws: Aws, line: str) -> None:
    aws.set(line, FifoQueue="true")

    with refused(
        "InvalidAttributeValue",
        "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported.",
    ):
        aws.set(line, FifoQueue="false")


def test_high_throughput_needs_deduplication_by_group(aws: Aws, line: str) -> None:
    with refused("InvalidAttributeValue"):
        aws.set(line, FifoThroughputLimit="perMessageGroupId")

    aws.set(line, FifoThroughputLimit="perMessageGroupId", DeduplicationScope="messageGroup")

    shown = aws.attributes(line)
    assert shown["FifoThroughputLimit"] == "perMessageGroupId"
    assert shown["DeduplicationScope"] == "messageGroup"
    with refused("InvalidAttributeValue"):
        aws.set(line, DeduplicationScope="queue")


# --- encryption: stored and returned ---


def test_a_key_for_encryption_takes_the_place_of_the_managed_one(aws: Aws, queue: str) -> None:
    aws.set(queue, KmsMasterKeyId="alias/ours", KmsDataKeyReusePeriodSeconds=600)

    shown = aws.attributes(queue)
    assert shown["KmsMasterKeyId"] == "alias/ours"
    assert shown["KmsDataKeyReusePeriodSeconds"] == "600"
    assert shown["SqsManagedSseEnabled"] == "false"

    aws.set(queue, KmsMasterKeyId="", KmsDataKeyReusePeriodSeconds=300)

    shown = aws.attributes(queue)
    assert shown.keys().isdisjoint({"KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds"})
    assert shown["SqsManagedSseEnabled"] == "false"


def test_there_is_one_kind_of_encryption_at_a_time(aws: Aws, queue: str) -> None:
    with refused(
        "InvalidAttributeName",
        "You can use one type of server-side encryption (SSE) at one time. You can either enable "
        "KMS SSE or SQS SSE.",
    ):
        aws.set(queue, KmsMasterKeyId="alias/ours", SqsManagedSseEnabled="true")

    aws.set(queue, KmsMasterKeyId="alias/ours")
    aws.set(queue, SqsManagedSseEnabled="true")

    assert aws.attribute(queue, "KmsMasterKeyId") is None
    assert aws.attribute(queue, "SqsManagedSseEnabled") == "true"


# --- policies ---


def test_a_policy_is_returned_as_written_and_removed_by_an_empty_value(
    aws: Aws, queue: str
) -> None:
    policy = json.dumps({"Version": "2012-10-17", "Statement": []}, indent=2)

    aws.set(queue, Policy=policy)

    assert aws.attribute(queue, "Policy") == policy
    aws.set(queue, Policy="")
    assert "Policy" not in aws.attributes(queue)
    for wrong in ("not json", "[]", json.dumps({"x": "y" * 8192})):
        with refused("InvalidAttributeValue", "Invalid value for the parameter Policy."):
            aws.set(queue, Policy=wrong)


def test_the_count_of_a_redrive_policy_is_returned_as_a_number(aws: Aws, queue: str) -> None:
    letters = arn_of(aws.make())

    for count in (1, "1000"):
        given = {"deadLetterTargetArn": letters, "maxReceiveCount": count}
        aws.set(queue, RedrivePolicy=json.dumps(given))
        shown = json.loads(aws.attributes(queue)["RedrivePolicy"])
        assert shown == {"deadLetterTargetArn": letters, "maxReceiveCount": int(count)}

    aws.set(queue, RedrivePolicy="")
    assert "RedrivePolicy" not in aws.attributes(queue)


def test_a_redrive_policy_must_be_whole(aws: Aws, queue: str) -> None:
    letters = arn_of(aws.make())

    def reason(policy: object) -> str:
        text = policy if isinstance(policy, str) else json.dumps(policy)
        with refused("InvalidParameterValue") as refusal:
            aws.set(queue, RedrivePolicy=text)
        with refused("InvalidParameterValue", refusal.text):
            aws.make_named(a_name(), RedrivePolicy=text)
        return refusal.text.partition(" Reason: ")[2]

    missing = "Redrive policy does not contain mandatory attribute: "
    assert reason({"maxReceiveCount": 1}) == f"{missing}deadLetterTargetArn."
    assert reason({"deadLetterTargetArn": letters}) == f"{missing}maxReceiveCount."
    for count in (0, 1001, "many"):
        assert reason({"deadLetterTargetArn": letters, "maxReceiveCount": count}) == (
            f"Invalid value for maxReceiveCount: {count}, valid values are from 1 to 1000 both "
            "inclusive."
        )
    gone = "Dead letter target does not exist."
    assert reason({"deadLetterTargetArn": f"{letters}x", "maxReceiveCount": 1}) == gone
    other = letters.replace("000000000000", "999999999999")
    assert reason({"deadLetterTargetArn": other, "maxReceiveCount": 1}) == gone
    assert "JSON" in reason("nonsense")
    assert "deadLetterTargetArn" in reason({"deadLetterTargetArn": "x", "maxReceiveCount": 1})


def test_dead_letters_go_to_a_queue_of_the_same_type(aws: Aws, queue: str, line: str) -> None:
    for source, target in ((queue, line), (line, queue)):
        policy = {"deadLetterTargetArn": arn_of(target), "maxReceiveCount": 1}
        with refused("InvalidParameterValue") as refusal:
            aws.set(source, RedrivePolicy=json.dumps(policy))
        assert "must be same type of queue as the source" in refusal.text


def test_a_queue_lists_the_queues_whose_dead_letters_it_takes(aws: Aws, queue: str) -> None:
    source = aws.make()
    policy = {"deadLetterTargetArn": arn_of(queue), "maxReceiveCount": 1}

    def check(*, is_taken: bool) -> None:
        aws.set(source, RedrivePolicy="")
        with nullcontext() if is_taken else refused("InvalidParameterValue"):
            aws.set(source, RedrivePolicy=json.dumps(policy))

    for permission, sources, expected in (
        ("denyAll", None, False),
        ("allowAll", None, True),
        ("byQueue", [arn_of(queue)], False),
        ("byQueue", [arn_of(queue), arn_of(source)], True),
    ):
        given: dict[str, object] = {"redrivePermission": permission}
        given |= {} if sources is None else {"sourceQueueArns": sources}
        aws.set(queue, RedriveAllowPolicy=json.dumps(given))
        assert json.loads(aws.attributes(queue)["RedriveAllowPolicy"]) == given
        check(is_taken=expected)

    aws.set(queue, RedriveAllowPolicy="")
    assert "RedriveAllowPolicy" not in aws.attributes(queue)
    check(is_taken=True)


@pytest.mark.parametrize(
    "policy",
    [
        "nonsense",
        {},
        {"redrivePermission": "some"},
        {"redrivePermission": "byQueue"},
        {"redrivePermission": "byQueue", "sourceQueueArns": ["x"]},
        {"redrivePermission": "byQueue", "sourceQueueArns": ["arn:aws:sqs:x:123456789012:q"] * 11},
        {"redrivePermission": "denyAll", "sourceQueueArns": ["arn:aws:sqs:x:123456789012:q"]},
    ],
)
def test_a_redrive_allow_policy_must_be_whole(aws: Aws, queue: str, policy: object) -> None:
    text = policy if isinstance(policy, str) else json.dumps(policy)

    with refused("InvalidParameterValue"):
        aws.set(queue, RedriveAllowPolicy=text)


def test_policies_survive_changes_of_other_attributes(aws: Aws, queue: str) -> None:
    letters = arn_of(aws.make())
    redrive = json.dumps({"deadLetterTargetArn": letters, "maxReceiveCount": 2})
    aws.set(queue, RedrivePolicy=redrive, Policy='{"Id":"x"}', KmsMasterKeyId="k")
    before = aws.attributes(queue)

    aws.set(queue, VisibilityTimeout=1)
    aws.client.tag_queue(QueueUrl=queue, Tags={"a": "b"})

    assert aws.attributes(queue) == {**before, "VisibilityTimeout": "1"}
    assert aws.make_named(name_of(queue), Policy='{"Id":"x"}') == queue
