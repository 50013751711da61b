"""The queue attributes that are JSON: Policy, RedrivePolicy and RedriveAllowPolicy."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.edge.aws.errors import AwsError, invalid_value
from penstock.edge.sqs.errors import invalid_attribute_value
from penstock.edge.sqs.rules.names import is_same_queue, of_arn

MAX_POLICY_BYTES = 8192
MAX_RECEIVES = 1000
MAX_SOURCES = 10
_PERMISSIONS = ("allowAll", "denyAll", "byQueue")
_TARGET = "deadLetterTargetArn"
_COUNT = "maxReceiveCount"
_encode = msgspec.json.Encoder().encode


class RedrivePolicy(msgspec.Struct, frozen=True):
    deadLetterTargetArn: str  # noqa: N815
    maxReceiveCount: int  # noqa: N815

    def is_equivalent(self, other: RedrivePolicy | None) -> bool:
        return (
            other is not None
            and self.maxReceiveCount == other.maxReceiveCount
            and is_same_queue(self.deadLetterTargetArn, other.deadLetterTargetArn)
        )

    def __str__(self) -> str:
        return _encode(self).decode()


class RedriveAllowPolicy(msgspec.Struct, frozen=True, omit_defaults=True):
    redrivePermission: str  # noqa: N815
    sourceQueueArns: tuple[str, ...] = ()  # noqa: N815

    def __str__(self) -> str:
        return _encode(self).decode()

    def allows(self, source_arn: str) -> bool:
        if self.redrivePermission == "byQueue":
            return any(is_same_queue(source_arn, arn) for arn in self.sourceQueueArns)
        return self.redrivePermission == "allowAll"


def check_policy(text: str) -> str:
    """Accept any JSON object; it is not enforced: API keys decide about access."""
    if len(text.encode()) > MAX_POLICY_BYTES or _object(text) is None:
        raise invalid_attribute_value("Policy")
    return text


def read_redrive_policy(text: str) -> RedrivePolicy:
    """Raises InvalidParameterValue; the caller checks that the target exists."""
    given = _object(text)
    if given is None:
        raise invalid_redrive_policy(text, "Redrive policy is not a valid JSON map.")
    for name in (_COUNT, _TARGET):  # the order in which AWS checks
        if given.get(name) in (None, ""):
            raise invalid_redrive_policy(
                text, f"Redrive policy does not contain mandatory attribute: {name}."
            )
    count = _count(given[_COUNT])
    if count is None:
        raise invalid_redrive_policy(
            text,
            f"Invalid value for maxReceiveCount: {given[_COUNT]}, valid values are from 1 to "
            f"{MAX_RECEIVES} both inclusive.",
        )
    target = given[_TARGET]
    if not isinstance(target, str) or of_arn(target) is None:
        raise invalid_redrive_policy(text, "Invalid value for deadLetterTargetArn.")
    return RedrivePolicy(target, count)


NO_TARGET = "Dead letter target does not exist."
ANOTHER_TYPE = (
    "Dead-letter queue must be same type of queue as the source.."  # the punctuation of AWS
)
# Its RedriveAllowPolicy does not name the source queue.
TARGET_REFUSES = "The dead-letter queue does not allow this queue as its source."


def invalid_redrive_policy(text: str, reason: str) -> AwsError:
    return invalid_value(text, "RedrivePolicy", reason)


def read_redrive_allow_policy(text: str) -> RedriveAllowPolicy:
    """Raises InvalidParameterValue."""
    given = _object(text)
    if given is None:
        raise _invalid_allow(text, "Redrive allow policy is not a valid JSON map.")
    permission = given.get("redrivePermission")
    if permission not in _PERMISSIONS:
        raise _invalid_allow(
            text,
            "Amazon SQS can't create the redrive allow policy. redrivePermission must be one of "
            "allowAll, denyAll and byQueue.",
        )
    sources = given.get("sourceQueueArns") or []
    is_list = isinstance(sources, list) and all(isinstance(arn, str) for arn in sources)
    if permission != "byQueue":
        if sources:
            raise _invalid_allow(
                text, "sourceQueueArns may be given only when redrivePermission is byQueue."
            )
    elif not is_list or not 1 <= len(sources) <= MAX_SOURCES:
        raise _invalid_allow(text, f"sourceQueueArns must have 1 to {MAX_SOURCES} ARNs.")
    elif not all(of_arn(arn) for arn in sources):
        raise _invalid_allow(text, "sourceQueueArns must be ARNs of queues.")
    return RedriveAllowPolicy(permission, tuple(sources))


def _invalid_allow(text: str, reason: str) -> AwsError:
    return invalid_value(text, "RedriveAllowPolicy", reason)


def _object(text: str) -> dict[str, Any] | None:
    try:
        given = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return given if isinstance(given, dict) else None


def _count(value: Any) -> int | None:
    """Parse a number, quoted or not, because many tools send it quoted."""
    text = str(value) if isinstance(value, int | str) else ""
    is_whole = text.isascii() and text.isdigit() and len(text) < 6
    return int(text) if is_whole and 1 <= int(text) <= MAX_RECEIVES else None
