"""Queue attributes: read, checked, compared and rendered."""

from __future__ import annotations

import json

import pytest

from penstock.edge.aws.errors import AwsError
from penstock.edge.sqs.rules import attributes
from penstock.edge.sqs.rules.attributes import Figures, QueueAttributes
from penstock.edge.sqs.rules.policies import RedriveAllowPolicy, RedrivePolicy

DLQ = "arn:aws:sqs:eu-west-1:123456789012:dead"
DLQ_ABROAD = DLQ.replace("eu-west-1", "us-east-1")
NOW = Figures(
    arn="arn:aws:sqs:eu-west-1:123456789012:mail",
    created_at=1_700_000_000_999,
    modified_at=1_700_000_001_000,
    visible=3,
    in_flight=2,
    delayed=1,
)
STANDARD = {
    "DelaySeconds": "0",
    "MaximumMessageSize": "1048576",
    "MessageRetentionPeriod": "345600",
    "ReceiveMessageWaitTimeSeconds": "0",
    "VisibilityTimeout": "30",
    "SqsManagedSseEnabled": "true",
}
FIFO = {
    **STANDARD,
    "FifoQueue": "true",
    "ContentBasedDeduplication": "false",
    "DeduplicationScope": "queue",
    "FifoThroughputLimit": "perQueue",
}


def refusal(act, *args) -> AwsError:
    with pytest.raises(AwsError) as caught:
        act(*args)
    return caught.value


def changed(given: dict[str, str], *, of: dict[str, str] | None = None) -> dict[str, str]:
    return attributes.render(attributes.read_changes(attributes.read_new(of or {}), given))


def test_a_new_queue_has_the_defaults_of_its_type():
    assert attributes.render(attributes.read_new({})) == STANDARD
    assert attributes.render(attributes.read_new({"FifoQueue": "true"})) == FIFO


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("DelaySeconds", ("0", "900"), ("901", "-1", "x")),
        ("MaximumMessageSize", ("1024", "1048576"), ("1023", "1048577")),
        ("MessageRetentionPeriod", ("60", "1209600"), ("59", "1209601")),
        ("ReceiveMessageWaitTimeSeconds", ("0", "20"), ("21",)),
        ("VisibilityTimeout", ("0", "43200"), ("43201", "1800.0", "", "٣", "1" * 5000)),
        ("KmsDataKeyReusePeriodSeconds", ("60", "86400"), ("59", "86401")),
        ("SqsManagedSseEnabled", ("true", "false"), ("yes", "")),
    ],
)
def test_a_value_is_taken_within_its_range_and_refused_outside(name, good, bad):
    for text in good:
        assert attributes.render(attributes.read_new({name: text}))[name] == text
    for text in bad:
        error = refusal(attributes.read_new, {name: text})
        assert error.code == "InvalidAttributeValue"
        assert error.message == f"Invalid value for the parameter {name}."


def test_a_server_may_allow_shorter_retentions():
    found = attributes.read_new({"MessageRetentionPeriod": "1"}, least_retention=1)

    assert found.retention == 1


def test_booleans_are_rendered_in_lower_case():
    given = {"FifoQueue": "True", "ContentBasedDeduplication": "TRUE"}

    found = attributes.render(attributes.read_new(given))

    assert found["FifoQueue"] == found["ContentBasedDeduplication"] == "true"


@pytest.mark.parametrize("name", ["Foo", "All", "QueueArn", "ApproximateNumberOfMessages"])
def test_a_read_only_attribute_is_unknown_to_writes(name):
    for act in (attributes.read_new, lambda given: changed(given)):
        error = refusal(act, {"DelaySeconds": "1", name: "1"})

        assert (error.code, error.message) == ("InvalidAttributeName", f"Unknown Attribute {name}.")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"FifoQueue": "false"}, "Unknown Attribute FifoQueue."),
        ({"ContentBasedDeduplication": "true"}, "Unknown Attribute ContentBasedDeduplication."),
        (
            {"DeduplicationScope": "queue"},
            "You can specify the DeduplicationScope only when FifoQueue is set to true.",
        ),
        (
            {"FifoThroughputLimit": "perQueue"},
            "You can specify the FifoThroughputLimit only when FifoQueue is set to true.",
        ),
    ],
)
def test_a_standard_queue_takes_no_fifo_attributes(given, text):
    for act in (attributes.read_new, lambda given: changed(given)):
        error = refusal(act, given)

        assert (error.code, error.message) == ("InvalidAttributeName", text)


def test_a_standard_queue_cannot_become_a_fifo_queue():
    assert refusal(changed, {"FifoQueue": "true"}).message == "Unknown Attribute FifoQueue."


def test_a_fifo_queue_stays_one():
    current = attributes.read_new({"FifoQueue": "true"})

    assert attributes.read_changes(current, {"FifoQueue": "true"}) == current
    error = refusal(attributes.read_changes, current, {"FifoQueue": "false"})
    assert (error.code, error.message) == (
        "InvalidAttributeValue",
        "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported.",
    )


def test_throughput_per_group_needs_deduplication_per_group():
    fifo = {"FifoQueue": "true"}
    limit = {"FifoThroughputLimit": "perMessageGroupId"}

    assert refusal(attributes.read_new, fifo | limit).code == "InvalidAttributeValue"
    both = changed(limit, of=fifo | {"DeduplicationScope": "messageGroup"})
    assert both["FifoThroughputLimit"] == "perMessageGroupId"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Policy", '{"Version": "2012-10-17"}'),
        ("KmsMasterKeyId", "alias/aws/sqs"),
        ("RedrivePolicy", f'{{"deadLetterTargetArn":"{DLQ}","maxReceiveCount":3}}'),
        ("RedriveAllowPolicy", '{"redrivePermission":"denyAll"}'),
    ],
)
def test_a_text_is_kept_until_an_empty_one_removes_it(name, text):
    assert changed({name: text})[name] == text
    assert name not in changed({name: ""}, of={name: text})


@pytest.mark.parametrize("policy", ["no JSON", "[]", '{"a":"%s"}' % ("x" * 8192)])
def test_a_policy_is_a_json_object_of_moderate_size(policy):
    error = refusal(attributes.read_new, {"Policy": policy})

    assert error.message == "Invalid value for the parameter Policy."


def test_a_key_turns_the_other_encryption_off_permanently():
    key = {"KmsMasterKeyId": "alias/aws/sqs"}

    assert changed(key)["SqsManagedSseEnabled"] == "false"
    assert changed({"KmsMasterKeyId": ""}, of=key)["SqsManagedSseEnabled"] == "false"
    assert "KmsMasterKeyId" not in changed({"SqsManagedSseEnabled": "true"}, of=key)
    both = refusal(attributes.read_new, key | {"SqsManagedSseEnabled": "true"})
    assert both.code == "InvalidAttributeName"


# --- redrive policies ---


@pytest.mark.parametrize("count", ["3", '"3"'])
def test_a_redrive_policy_reads_back_with_a_number(count):
    text = f'{{"maxReceiveCount": {count}, "deadLetterTargetArn": "{DLQ}"}}'

    found = attributes.read_new({"RedrivePolicy": text})

    assert found.redrive_policy == RedrivePolicy(DLQ, 3)
    assert attributes.render(found)["RedrivePolicy"] == (
        f'{{"deadLetterTargetArn":"{DLQ}","maxReceiveCount":3}}'
    )


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (
            {"maxReceiveCount": 3},
            "Redrive policy does not contain mandatory attribute: deadLetterTargetArn.",
        ),
        (
            {"deadLetterTargetArn": DLQ},
            "Redrive policy does not contain mandatory attribute: maxReceiveCount.",
        ),
        *(
            (
                {"deadLetterTargetArn": DLQ, "maxReceiveCount": count},
                f"Invalid value for maxReceiveCount: {count}, valid values are from 1 to 1000 both "
                "inclusive.",
            )
            for count in (0, 1001, -1, "x", 1.5, True)
        ),
        (
            {"deadLetterTargetArn": "dead", "maxReceiveCount": 1},
            "Invalid value for deadLetterTargetArn.",
        ),
        ({}, "Redrive policy does not contain mandatory attribute: maxReceiveCount."),
        ([], "Redrive policy is not a valid JSON map."),
    ],
)
def test_an_invalid_redrive_policy_is_rejected_with_the_reason(policy, reason):
    text = json.dumps(policy)

    error = refusal(attributes.read_new, {"RedrivePolicy": text})

    assert error.code == "InvalidParameterValue"
    assert error.message == f"Value {text} for parameter RedrivePolicy is invalid. Reason: {reason}"


def test_a_dead_letter_queue_can_limit_which_queues_use_it():
    named = RedriveAllowPolicy("byQueue", ("a",))

    assert (named.allows("a"), named.allows("b")) == (True, False)
    assert RedriveAllowPolicy("allowAll").allows("a")
    assert not RedriveAllowPolicy("denyAll").allows("a")


@pytest.mark.parametrize("nothing", [None, 0, False, "", [], {}])
def test_no_sources_can_be_written_in_many_ways(nothing):
    policy = json.dumps({"redrivePermission": "allowAll", "sourceQueueArns": nothing})

    read = attributes.read_new({"RedriveAllowPolicy": policy})

    assert read.redrive_allow_policy == RedriveAllowPolicy("allowAll")


def test_the_region_in_an_arn_makes_no_other_queue():
    here, there = (f"arn:aws:sqs:{region}:000000000000:dead" for region in ("here", "there"))
    elsewhere = "arn:aws:sqs:here:111111111111:dead"

    assert RedrivePolicy(here, 3).is_equivalent(RedrivePolicy(there, 3))
    assert not RedrivePolicy(here, 3).is_equivalent(RedrivePolicy(there, 4))
    assert not RedrivePolicy(here, 3).is_equivalent(RedrivePolicy(elsewhere, 3))
    assert RedriveAllowPolicy("byQueue", (here,)).allows(there)
    assert not RedriveAllowPolicy("byQueue", (here,)).allows(elsewhere)


@pytest.mark.parametrize(
    "policy",
    [
        [],
        {},
        {"redrivePermission": "some"},
        {"redrivePermission": "byQueue"},
        {"redrivePermission": "byQueue", "sourceQueueArns": []},
        {"redrivePermission": "byQueue", "sourceQueueArns": [DLQ] * 11},
        {"redrivePermission": "byQueue", "sourceQueueArns": ["mail"]},
        {"redrivePermission": "byQueue", "sourceQueueArns": [7]},
        {"redrivePermission": "byQueue", "sourceQueueArns": "arn"},
        {"redrivePermission": "allowAll", "sourceQueueArns": [DLQ]},
    ],
)
def test_a_bad_redrive_allow_policy_is_refused(policy):
    error = refusal(attributes.read_new, {"RedriveAllowPolicy": json.dumps(policy)})

    assert error.code == "InvalidParameterValue"


# --- compare and render ---


@pytest.mark.parametrize(
    ("given", "difference"),
    [
        ({}, None),
        ({"DelaySeconds": "5", "VisibilityTimeout": "30"}, None),
        ({"DelaySeconds": "5", "VisibilityTimeout": "31"}, "VisibilityTimeout"),
        ({"RedrivePolicy": f'{{"maxReceiveCount":"3","deadLetterTargetArn":"{DLQ}"}}'}, None),
        ({"RedrivePolicy": f'{{"maxReceiveCount":3,"deadLetterTargetArn":"{DLQ_ABROAD}"}}'}, None),
        ({"RedrivePolicy": ""}, "RedrivePolicy"),
        ({"Policy": ""}, None),
        ({"FifoQueue": "true"}, "FifoQueue"),
    ],
)
def test_a_queue_made_again_is_compared_by_what_is_given(given, difference):
    current = QueueAttributes(delay=5, redrive_policy=RedrivePolicy(DLQ, 3))

    assert attributes.first_difference(current, given) == difference


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"FifoQueue": "false"}, "InvalidAttributeName"),
        ({"DeduplicationScope": "queue"}, "InvalidAttributeName"),
        ({"ContentBasedDeduplication": "true"}, "InvalidAttributeName"),
        ({"MessageRetentionPeriod": "59"}, "InvalidAttributeValue"),
        ({"QueueArn": "x"}, "InvalidAttributeName"),
    ],
)
def test_an_invalid_attribute_is_also_rejected_when_the_queue_is_created_again(given, code):
    again = refusal(lambda: attributes.first_difference(QueueAttributes(), given))

    assert again.code == refusal(attributes.read_new, given).code == code


def test_creating_a_fifo_queue_again_does_not_need_the_fifo_attribute():
    current = QueueAttributes(fifo=True, content_based_deduplication=True)

    assert attributes.first_difference(current, {"ContentBasedDeduplication": "true"}) is None
    assert attributes.first_difference(current, {"DelaySeconds": "1"}) == "DelaySeconds"


def test_all_gives_what_is_set_and_the_figures_of_the_moment():
    assert attributes.chosen(["All"], QueueAttributes(), NOW) == {
        **STANDARD,
        "QueueArn": "arn:aws:sqs:eu-west-1:123456789012:mail",
        "CreatedTimestamp": "1700000000",
        "LastModifiedTimestamp": "1700000001",
        "ApproximateNumberOfMessages": "3",
        "ApproximateNumberOfMessagesNotVisible": "2",
        "ApproximateNumberOfMessagesDelayed": "1",
    }


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (None, {}),
        ([], {}),
        (["Policy", "FifoQueue"], {}),
        (["DelaySeconds", "QueueArn"], {"DelaySeconds": "0", "QueueArn": NOW.arn}),
    ],
)
def test_only_requested_attributes_with_a_value_are_returned(names, found):
    assert attributes.chosen(names, QueueAttributes(), NOW) == found


def test_an_unknown_name_cannot_be_asked_for():
    error = refusal(attributes.chosen, ["DelaySeconds", "Foo"], QueueAttributes(), NOW)

    assert (error.code, error.message) == ("InvalidAttributeName", "Unknown Attribute Foo.")


@pytest.mark.parametrize("wrong", ["x" * 2049, "nul\0"])
def test_the_id_of_a_key_has_its_length_and_no_nul(wrong):
    with pytest.raises(AwsError, match="Invalid value for the parameter KmsMasterKeyId"):
        attributes.read_new({"KmsMasterKeyId": wrong})
    assert attributes.read_new({"KmsMasterKeyId": "x" * 2048}).kms_master_key_id == "x" * 2048
