"""Attributes of topics: which there are, how they are stored, and how they are shown."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from penstock.domain.bus.topic import TopicSettings
from penstock.domain.queue.queue import DedupScope, Ordering
from penstock.edge.sns.delivery_policy import DEFAULT_POLICY, check_policy
from penstock.edge.sns.errors import invalid_parameter

FIFO = ".fifo"
PREFIX = "sns."
_NAME = re.compile(r"[A-Za-z0-9_-]{1,256}")
_FIFO_NAME = re.compile(r"[A-Za-z0-9_-]{1,251}\.fifo")
_BOOLEANS = {"true": True, "false": False}
_SCOPES = {"Topic": DedupScope.QUEUE, "MessageGroup": DedupScope.GROUP}
_SCOPE_NAMES = {scope: name for name, scope in _SCOPES.items()}
_FIFO_ONLY = ("ContentBasedDeduplication", "FifoThroughputScope")
# Stored and returned as they are.
_KEPT = frozenset(
    {
        "ArchivePolicy",
        "DeliveryPolicy",
        "DisplayName",
        "KmsMasterKeyId",
        "Policy",
        "SignatureVersion",
        "TracingConfig",
    }
    | {
        f"{protocol}{kind}"
        for protocol in ("Application", "Firehose", "HTTP", "Lambda", "SQS")
        for kind in (
            "SuccessFeedbackRoleArn",
            "SuccessFeedbackSampleRate",
            "FailureFeedbackRoleArn",
        )
    }
)
_MAX_CHARS = 30 * 1024
_encode = msgspec.json.Encoder().encode


def new_settings(name: str, given: Mapping[str, str], tags: Mapping[str, str]) -> TopicSettings:
    """The settings of a new topic; raises InvalidParameter."""
    is_fifo = given.get("FifoTopic", "").lower() == "true"
    if is_fifo and not _FIFO_NAME.fullmatch(name):
        raise invalid_parameter(
            "Fifo Topic names must end with .fifo and must be made up of only uppercase and "
            "lowercase ASCII letters, numbers, underscores, and hyphens, and must be between 1 and "
            "256 characters long."
        )
    if not is_fifo and not _NAME.fullmatch(name):
        raise invalid_parameter("Topic Name")
    settings = TopicSettings(
        ordering=Ordering.GROUP if is_fifo else Ordering.STANDARD, labels=dict(tags)
    )
    for attribute, value in given.items():
        if attribute != "FifoTopic":
            settings = changed(settings, attribute, value)
        elif value.lower() not in _BOOLEANS:
            raise invalid_parameter("Attributes Reason: FifoTopic must be true or false")
    return settings


def changed(settings: TopicSettings, name: str, value: str) -> TopicSettings:
    """The settings with this attribute; raises InvalidParameter."""
    replace = msgspec.structs.replace
    if name in _FIFO_ONLY and not settings.is_ordered:
        raise invalid_parameter(f"Attributes Reason: {name} can only be set for FIFO topics")
    if name == "ContentBasedDeduplication":
        if value.lower() not in _BOOLEANS:
            raise invalid_parameter(f"Attributes Reason: {name} must be true or false")
        return replace(settings, dedup_by_content=_BOOLEANS[value.lower()])
    if name == "FifoThroughputScope":
        if value not in _SCOPES:
            raise invalid_parameter(f"Attributes Reason: {name} must be Topic or MessageGroup")
        return replace(settings, dedup_scope=_SCOPES[value])
    if name not in _KEPT:
        raise invalid_parameter("AttributeName")
    _check(name, value)
    others = {key: text for key, text in settings.annotations.items() if key != PREFIX + name}
    return replace(settings, annotations=others | ({PREFIX + name: value} if value else {}))


def shown(
    settings: TopicSettings, *, arn: str, owner: str, confirmed: int, pending: int
) -> dict[str, str]:
    """All attributes of a topic."""
    found = {
        "TopicArn": arn,
        "Owner": owner,
        "Policy": _default_policy(arn, owner),
        "DisplayName": "",
        "SubscriptionsPending": str(pending),
        "SubscriptionsConfirmed": str(confirmed),
        "SubscriptionsDeleted": "0",
        "EffectiveDeliveryPolicy": DEFAULT_POLICY,
    }
    for name in sorted(_KEPT):
        value = settings.annotations.get(PREFIX + name)
        if value is not None:
            found[name] = value
    if settings.is_ordered:
        found["FifoTopic"] = "true"
        found["ContentBasedDeduplication"] = str(settings.dedup_by_content).lower()
        found["FifoThroughputScope"] = _SCOPE_NAMES[settings.dedup_scope]
    return found


def differs(present: TopicSettings, wanted: TopicSettings, given: Mapping[str, str]) -> bool:
    """Whether CreateTopic of an existing topic names other attributes than it has."""
    if present.ordering is not wanted.ordering:
        return True
    before, after = (
        shown(one, arn="", owner="", confirmed=0, pending=0) for one in (present, wanted)
    )
    return any(before.get(name, "") != after.get(name, "") for name in given)


def is_fifo(name: str) -> bool:
    return name.endswith(FIFO)


def _check(name: str, value: str) -> None:
    if len(value) > _MAX_CHARS or "\x00" in value:
        raise invalid_parameter(f"{name} Reason: it has more than {_MAX_CHARS} characters")
    if name == "SignatureVersion" and value not in ("1", "2"):
        raise invalid_parameter("SignatureVersion Reason: it must be 1 or 2")
    if name == "DisplayName" and len(value) > 100:
        raise invalid_parameter("DisplayName Reason: it has more than 100 characters")
    if name == "DeliveryPolicy" and value:
        check_policy(value)
    if name == "Policy" and value:
        try:
            msgspec.json.decode(value, type=dict)
        except (msgspec.DecodeError, RecursionError):
            raise invalid_parameter("Policy Error: null") from None


def _default_policy(arn: str, owner: str) -> str:
    actions = (
        "GetTopicAttributes",
        "SetTopicAttributes",
        "AddPermission",
        "RemovePermission",
        "DeleteTopic",
        "Subscribe",
        "ListSubscriptionsByTopic",
        "Publish",
    )
    statement = {
        "Sid": "__default_statement_ID",
        "Effect": "Allow",
        "Principal": {"AWS": "*"},
        "Action": [f"SNS:{action}" for action in actions],
        "Resource": arn,
        "Condition": {"StringEquals": {"AWS:SourceOwner": owner}},
    }
    policy = {"Version": "2008-10-17", "Id": "__default_policy_ID", "Statement": [statement]}
    return _encode(policy).decode()
