"""AddPermission and RemovePermission: statements of a queue's policy.

The policy is stored and returned but not enforced: API keys decide about access.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from penstock.edge.aws.errors import invalid_value
from penstock.edge.sqs.errors import missing_parameter, over_limit
from penstock.edge.sqs.rules.policies import MAX_POLICY_BYTES
from penstock.edge.sqs.wire.operations import OPERATIONS

MAX_ACTIONS = 7
_LABEL = re.compile(r"[A-Za-z0-9_-]{1,80}")
_ACCOUNT = re.compile(r"[0-9]{12}")
_VERSION = "2008-10-17"
_ACTIONS = frozenset(
    {
        "*",
        "ChangeMessageVisibility",
        "DeleteMessage",
        "GetQueueAttributes",
        "GetQueueUrl",
        "ListDeadLetterSourceQueues",
        "PurgeQueue",
        "ReceiveMessage",
        "SendMessage",
    }
)
# A permission for one message includes batches, which are not actions of their own.
_OF_THE_OWNER = {name for name in OPERATIONS if not name.endswith("Batch")} - _ACTIONS
_OWNERS_ONLY = "Only the queue owner is allowed to invoke this action."
_NO_ACTION = "Please refer to the appropriate WSDL for a list of valid actions."

_encode = msgspec.json.Encoder().encode


def add(
    policy: str | None, *, arn: str, label: str, accounts: Sequence[str], actions: Sequence[str]
) -> str:
    """Return the policy with one more statement; raises AwsError."""
    _check(label, accounts, actions)
    return with_statement(
        policy, arn=arn, service="SQS", label=label, accounts=accounts, actions=actions
    )


def with_statement(
    policy: str | None,
    *,
    arn: str,
    service: str,
    label: str,
    accounts: Sequence[str],
    actions: Sequence[str],
) -> str:
    """The same without checking what SQS allows."""
    tree = _tree(policy, arn, service)
    if any(_sid(statement) == label for statement in tree["Statement"]):
        raise invalid_value(label, "Label", "Already exists.")
    principals = [f"arn:aws:iam::{account}:root" for account in accounts]
    statement = {
        "Sid": label,
        "Effect": "Allow",
        "Principal": {"AWS": _one_or_many(principals)},
        "Action": _one_or_many([f"{service}:{action}" for action in actions]),
        "Resource": arn,
    }
    added = _encode({**tree, "Statement": [*tree["Statement"], statement]})
    if len(added) > MAX_POLICY_BYTES:
        raise over_limit(f"The policy would be larger than {MAX_POLICY_BYTES} bytes.")
    return added.decode()


def remove(policy: str | None, *, arn: str, label: str) -> str | None:
    """Return the policy without this statement, or None if it was the last one; raises AwsError."""
    tree = _tree(policy, arn, "SQS")
    left = [statement for statement in tree["Statement"] if _sid(statement) != label]
    if len(left) == len(tree["Statement"]):
        raise invalid_value(label, "Label", "can't find label.")
    return _encode({**tree, "Statement": left}).decode() if left else None


def _check(label: str, accounts: Sequence[str], actions: Sequence[str]) -> None:
    if not _LABEL.fullmatch(label):
        reason = (
            "can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length."
        )
        raise invalid_value(label, "Label", reason)
    if not accounts:
        raise invalid_value("[]", "PrincipalId", "Unable to verify.")
    if not actions:
        raise missing_parameter("Actions")
    if len(actions) > MAX_ACTIONS:
        raise over_limit(f"{len(actions)} Actions were found, maximum allowed is {MAX_ACTIONS}.")
    for action in actions:
        if action not in _ACTIONS:
            reason = _OWNERS_ONLY if action in _OF_THE_OWNER else _NO_ACTION
            raise invalid_value(f"SQS:{action}", "ActionName", reason)
    if not all(map(_ACCOUNT.fullmatch, accounts)):
        listed = f"[{', '.join(accounts)}]"
        raise invalid_value(listed, "PrincipalId", "Unable to verify principal.")


def _tree(policy: str | None, arn: str, service: str) -> dict[str, Any]:
    empty = {"Version": _VERSION, "Id": f"{arn}/{service}DefaultPolicy", "Statement": []}
    if policy is None:
        return empty
    tree: dict[str, Any] = msgspec.json.decode(policy)
    found = tree.get("Statement", [])
    return {**empty, **tree, "Statement": found if isinstance(found, list) else [found]}


def _sid(statement: Any) -> Any:
    return statement.get("Sid") if isinstance(statement, dict) else None


def _one_or_many(values: list[str]) -> str | list[str]:
    return values[0] if len(values) == 1 else values
