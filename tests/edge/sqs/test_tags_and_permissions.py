"""Tags, and the statements that AddPermission writes into a queue's policy."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.edge.api import a_name
from tests.edge.sqs.aws import Aws, arn_of, name_of, refused


def tags(aws: Aws, queue: str) -> dict[str, str] | None:
    """None if the response has none."""
    return aws.client.list_queue_tags(QueueUrl=queue).get("Tags")


def test_tags_are_added_overwritten_and_removed(aws: Aws, queue: str) -> None:
    assert tags(aws, queue) is None

    aws.client.tag_queue(QueueUrl=queue, Tags={"team": "mail", "Team": "other", "empty": ""})
    aws.client.tag_queue(QueueUrl=queue, Tags={"team": "post", "ümlaut": "ö"})
    aws.client.untag_queue(QueueUrl=queue, TagKeys=["empty", "unknown"])

    assert tags(aws, queue) == {"team": "post", "Team": "other", "ümlaut": "ö"}
    aws.client.untag_queue(QueueUrl=queue, TagKeys=["team", "Team", "ümlaut"])
    assert tags(aws, queue) is None


def test_a_queue_has_at_most_fifty_tags(aws: Aws, queue: str) -> None:
    full = {f"k{n}": "v" for n in range(50)}
    aws.client.tag_queue(QueueUrl=queue, Tags=full)

    with refused("InvalidParameterValue", f"Too many tags added for queue {name_of(queue)}."):
        aws.client.tag_queue(QueueUrl=queue, Tags={"one": "more", "k1": "changed"})

    assert tags(aws, queue) == full
    aws.client.tag_queue(QueueUrl=queue, Tags={"k1": "changed"})
    with refused("InvalidParameterValue"):
        aws.client.create_queue(QueueName=a_name(), tags={**full, "one": "more"})


def test_tags_have_their_lengths_and_some_are_reserved(aws: Aws, queue: str) -> None:
    aws.client.tag_queue(QueueUrl=queue, Tags={"k" * 128: "v" * 256})

    for wrong in ({"": "v"}, {"k" * 129: "v"}, {"k": "v" * 257}, {"k": "\0"}, {"Aws:k": "v"}):
        with refused("InvalidParameterValue"):
            aws.client.tag_queue(QueueUrl=queue, Tags=wrong)
        with refused("InvalidParameterValue"):
            aws.client.create_queue(QueueName=a_name(), tags=wrong)


def test_tags_are_needed_to_tag_and_keys_to_untag(aws: Aws, queue: str) -> None:
    with refused("MissingParameter", "The request must contain the parameter Tags."):
        aws.client.tag_queue(QueueUrl=queue, Tags={})
    with refused("InvalidParameterValue"):
        aws.client.untag_queue(QueueUrl=queue, TagKeys=[])


# --- permissions ---


def permit(aws: Aws, queue: str, label: str = "l", **fields: Any) -> None:
    given = {"AWSAccountIds": ["111111111111"], "Actions": ["SendMessage"], **fields}
    aws.client.add_permission(QueueUrl=queue, Label=label, **given)


def policy(aws: Aws, queue: str) -> Any:
    text = aws.attribute(queue, "Policy")
    return None if text is None else json.loads(text)


def test_a_permission_is_a_statement_of_the_policy(aws: Aws, queue: str) -> None:
    permit(aws, queue, "one")
    permit(
        aws,
        queue,
        "several",
        AWSAccountIds=["111111111111", "222222222222"],
        Actions=["SendMessage", "ReceiveMessage"],
    )

    arn = arn_of(queue)
    assert policy(aws, queue) == {
        "Version": "2008-10-17",
        "Id": f"{arn}/SQSDefaultPolicy",
        "Statement": [
            {
                "Sid": "one",
                "Effect": "Allow",
                "Principal": {"AWS": "arn:aws:iam::111111111111:root"},
                "Action": "SQS:SendMessage",
                "Resource": arn,
            },
            {
                "Sid": "several",
                "Effect": "Allow",
                "Principal": {
                    "AWS": ["arn:aws:iam::111111111111:root", "arn:aws:iam::222222222222:root"]
                },
                "Action": ["SQS:SendMessage", "SQS:ReceiveMessage"],
                "Resource": arn,
            },
        ],
    }


def test_the_last_permission_takes_the_policy_with_it(aws: Aws, queue: str) -> None:
    permit(aws, queue, "one")
    permit(aws, queue, "two", Actions=["*"])

    aws.client.remove_permission(QueueUrl=queue, Label="one")

    assert [statement["Sid"] for statement in policy(aws, queue)["Statement"]] == ["two"]
    aws.client.remove_permission(QueueUrl=queue, Label="two")
    assert "Policy" not in aws.attributes(queue)


def test_a_permission_joins_a_policy_that_was_there(aws: Aws, queue: str) -> None:
    own = {"Sid": "own", "Effect": "Deny", "Principal": "*", "Action": "*", "Resource": "*"}
    aws.set(queue, Policy=json.dumps({"Version": "2012-10-17", "Statement": own}))

    permit(aws, queue, "added")

    found = policy(aws, queue)
    assert found["Version"] == "2012-10-17"
    assert found["Statement"][0] == own
    assert found["Statement"][1]["Sid"] == "added"


def test_permissions_make_no_policy_larger_than_a_policy_may_be(aws: Aws, queue: str) -> None:
    aws.set(queue, Policy=json.dumps({"Id": "x" * 7900, "Statement": []}))
    permit(aws, queue, "one")
    before = aws.attribute(queue, "Policy")

    with refused("OverLimit", "The policy would be larger than 8192 bytes.", status=403):
        permit(aws, queue, "two")

    assert aws.attribute(queue, "Policy") == before
    aws.set(queue, Policy=before)


def test_labels_are_unique(aws: Aws, queue: str) -> None:
    permit(aws, queue, "l")

    with refused(
        "InvalidParameterValue", "Value l for parameter Label is invalid. Reason: Already exists."
    ):
        permit(aws, queue, "l")
    with refused(
        "InvalidParameterValue", "Value x for parameter Label is invalid. Reason: can't find label."
    ):
        aws.client.remove_permission(QueueUrl=queue, Label="x")


def test_a_permission_has_at_most_seven_actions(aws: Aws, queue: str) -> None:
    actions = [
        "ChangeMessageVisibility",
        "DeleteMessage",
        "GetQueueAttributes",
        "GetQueueUrl",
        "ListDeadLetterSourceQueues",
        "PurgeQueue",
        "ReceiveMessage",
        "SendMessage",
    ]
    permit(aws, queue, Actions=actions[:7])

    with refused("OverLimit", "8 Actions were found, maximum allowed is 7.", status=403) as refusal:
        permit(aws, queue, "more", Actions=actions)
    assert refusal.kind == "OverLimit"


@pytest.mark.parametrize(
    ("code", "fields"),
    [
        ("InvalidParameterValue", {"Actions": ["RemovePermission"]}),
        ("InvalidParameterValue", {"Actions": ["Nonsense"]}),
        ("InvalidParameterValue", {"AWSAccountIds": ["12"]}),
        ("InvalidParameterValue", {"AWSAccountIds": []}),
        ("MissingParameter", {"Actions": []}),
        ("InvalidParameterValue", {"label": "with space"}),
        ("InvalidParameterValue", {"label": "l" * 81}),
    ],
)
def test_a_permission_must_be_whole(aws: Aws, queue: str, code: str, fields: dict) -> None:
    with refused(code):
        permit(aws, queue, **fields)

    assert policy(aws, queue) is None


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ("CreateQueue", "Only the queue owner is allowed to invoke this action."),
        ("Nonsense", "Please refer to the appropriate WSDL for a list of valid actions."),
        ("SendMessageBatch", "Please refer to the appropriate WSDL for a list of valid actions."),
    ],
)
def test_an_action_that_cannot_be_permitted_is_rejected(
    aws: Aws, queue: str, action: str, reason: str
) -> None:
    text = f"Value SQS:{action} for parameter ActionName is invalid. Reason: {reason}"
    with refused("InvalidParameterValue", text):
        permit(aws, queue, Actions=[action])


@pytest.mark.parametrize(
    ("accounts", "reason"),
    [([], "Unable to verify."), (["111111111111", "me"], "Unable to verify principal.")],
)
def test_an_unknown_account_is_rejected(
    aws: Aws, queue: str, accounts: list[str], reason: str
) -> None:
    text = f"Value [{', '.join(accounts)}] for parameter PrincipalId is invalid. Reason: {reason}"
    with refused("InvalidParameterValue", text):
        permit(aws, queue, AWSAccountIds=accounts)


def test_a_label_is_needed(aws: Aws, queue: str) -> None:
    for act in (aws.loose.add_permission, aws.loose.remove_permission):
        with refused("MissingParameter", "The request must contain the parameter Label."):
            act(QueueUrl=queue)


@pytest.mark.parametrize("tags", [{"nul\0": "a"}, {"a": "nul\0"}])
def test_a_tag_has_no_nul(aws: Aws, queue: str, tags: dict[str, str]) -> None:
    text = "Tag keys and values must not include a NUL character."

    with refused("InvalidParameterValue", text):
        aws.client.tag_queue(QueueUrl=queue, Tags=tags)
    with refused("InvalidParameterValue", text):
        aws.client.create_queue(QueueName=a_name(), tags=tags)
