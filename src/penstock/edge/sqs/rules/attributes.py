"""Queue attributes: read from a request, checked, and rendered.

`QueueAttributes` holds what a client can set, `Figures` the read-only rest (the ARN, the counters).
stored_attributes.py maps attributes to queue settings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from penstock.edge.sqs import errors
from penstock.edge.sqs.rules.policies import (
    RedriveAllowPolicy,
    RedrivePolicy,
    check_policy,
    read_redrive_allow_policy,
    read_redrive_policy,
)

ALL = "All"
MIN_RETENTION = 60
_DEFAULT_KEY_REUSE = 300
_LONGEST_KEY_ID = 2048

_WHOLE = re.compile("[0-9]{1,10}")


class QueueAttributes(msgspec.Struct, frozen=True, kw_only=True):
    """In SQS's own units: seconds and bytes."""

    delay: int = 0
    max_message_size: int = 1024 * 1024
    retention: int = 4 * 24 * 3600
    wait_time: int = 0
    visibility_timeout: int = 30
    policy: str | None = None
    redrive_policy: RedrivePolicy | None = None
    redrive_allow_policy: RedriveAllowPolicy | None = None
    kms_master_key_id: str | None = None
    kms_data_key_reuse_period: int = _DEFAULT_KEY_REUSE
    sqs_managed_sse: bool = True
    fifo: bool = False
    content_based_deduplication: bool = False
    deduplication_scope: str = "queue"
    fifo_throughput_limit: str = "perQueue"


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The read-only attributes at one moment; instants in milliseconds since the epoch."""

    arn: str
    created_at: int
    modified_at: int
    visible: int
    in_flight: int
    delayed: int


READ_ONLY = (
    "QueueArn",
    "CreatedTimestamp",
    "LastModifiedTimestamp",
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)
_FIFO_ONLY = ("ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit")
_REPORTED_AS_FIFO_ONLY = ("DeduplicationScope", "FifoThroughputLimit")


def read_new(given: Mapping[str, str], *, least_retention: int = MIN_RETENTION) -> QueueAttributes:
    """Parse attributes for CreateQueue.

    Raises InvalidAttributeName, InvalidAttributeValue or InvalidParameterValue.  The caller checks
    that the dead-letter queue exists and is suitable.
    """
    return _changed(QueueAttributes(), given, is_new=True, least_retention=least_retention)


def read_changes(
    current: QueueAttributes,
    given: Mapping[str, str],
    *,
    least_retention: int = MIN_RETENTION,
) -> QueueAttributes:
    """Parse attributes for SetQueueAttributes; raises like `read_new`."""
    return _changed(current, given, is_new=False, least_retention=least_retention)


def read_one(name: str, text: str) -> Any:
    """The value of one attribute; raises InvalidAttributeValue or InvalidParameterValue."""
    return _RULES[name].read(name, text)


def first_difference(
    current: QueueAttributes,
    given: Mapping[str, str],
    *,
    least_retention: int = MIN_RETENTION,
) -> str | None:
    """The first given attribute that differs, for CreateQueue of an existing queue.

    Raises like `read_new` for values that no new queue could have.
    """
    is_fifo = current.fifo and "FifoQueue" not in given  # it may be left out
    first = QueueAttributes(fifo=is_fifo)
    wanted = _changed(first, given, is_new=not is_fifo, least_retention=least_retention)
    for name in given:
        field = _RULES[name].field
        if not _is_set_to(getattr(current, field), getattr(wanted, field)):
            return name
    return None


def _is_set_to(present: Any, wanted: Any) -> bool:
    if isinstance(present, RedrivePolicy):
        return present.is_equivalent(wanted)
    return bool(present == wanted)


def render(attributes: QueueAttributes) -> dict[str, str]:
    """The settable attributes as GetQueueAttributes returns them; unset ones are omitted."""
    shown = {
        name: rule.render(getattr(attributes, rule.field))
        for name, rule in _RULES.items()
        if getattr(attributes, rule.field) is not None
    }
    if attributes.kms_data_key_reuse_period == _DEFAULT_KEY_REUSE:
        del shown["KmsDataKeyReusePeriodSeconds"]
    if not attributes.fifo:
        for name in ("FifoQueue", *_FIFO_ONLY):
            del shown[name]
    return shown


def figures(now: Figures) -> dict[str, str]:
    return {
        "QueueArn": now.arn,
        "CreatedTimestamp": str(now.created_at // 1000),
        "LastModifiedTimestamp": str(now.modified_at // 1000),
        "ApproximateNumberOfMessages": str(now.visible),
        "ApproximateNumberOfMessagesNotVisible": str(now.in_flight),
        "ApproximateNumberOfMessagesDelayed": str(now.delayed),
    }


def chosen(
    names: Iterable[str] | None, attributes: QueueAttributes, now: Figures
) -> dict[str, str]:
    """The result of GetQueueAttributes; raises InvalidAttributeName."""
    wanted = check_names(names)
    shown = render(attributes) | figures(now)
    return {name: text for name, text in shown.items() if ALL in wanted or name in wanted}


def check_names(names: Iterable[str] | None) -> frozenset[str]:
    wanted = tuple(names or ())
    for name in wanted:
        if name not in _RULES and name not in READ_ONLY and name != ALL:
            raise errors.unknown_attribute(name)
    return frozenset(wanted)


# --- one rule per attribute ---


class _Rule(msgspec.Struct, frozen=True):
    field: str
    read: Callable[[str, str], Any]  # takes the name and the text of the attribute
    render: Callable[[Any], str] = str


def _number(field: str, least: int, most: int) -> _Rule:
    def read(name: str, text: str) -> int:
        if not _WHOLE.fullmatch(text) or not least <= int(text) <= most:
            raise errors.invalid_attribute_value(name)
        return int(text)

    return _Rule(field, read)


def _one_of(field: str, *words: str) -> _Rule:
    def read(name: str, text: str) -> str:
        if text not in words:
            raise errors.invalid_attribute_value(name)
        return text

    return _Rule(field, read)


def _truth(field: str) -> _Rule:
    def read(name: str, text: str) -> bool:
        if text.lower() not in ("true", "false"):
            raise errors.invalid_attribute_value(name)
        return text.lower() == "true"

    return _Rule(field, read, lambda value: "true" if value else "false")


def _text(field: str, check: Callable[[str], str]) -> _Rule:
    return _Rule(field, lambda name, text: check(text) if text else None)


def _check_key_id(text: str) -> str:
    if len(text) > _LONGEST_KEY_ID or not text.isprintable():
        raise errors.invalid_attribute_value("KmsMasterKeyId")
    return text


_RULES: dict[str, _Rule] = {
    "DelaySeconds": _number("delay", 0, 900),
    "MaximumMessageSize": _number("max_message_size", 1024, 1024 * 1024),
    "MessageRetentionPeriod": _number("retention", 1, 14 * 24 * 3600),
    "ReceiveMessageWaitTimeSeconds": _number("wait_time", 0, 20),
    "VisibilityTimeout": _number("visibility_timeout", 0, 43_200),
    "Policy": _text("policy", check_policy),
    "RedrivePolicy": _Rule(
        "redrive_policy", lambda name, text: read_redrive_policy(text) if text else None
    ),
    "RedriveAllowPolicy": _Rule(
        "redrive_allow_policy", lambda name, text: read_redrive_allow_policy(text) if text else None
    ),
    "KmsMasterKeyId": _text("kms_master_key_id", _check_key_id),
    "KmsDataKeyReusePeriodSeconds": _number("kms_data_key_reuse_period", 60, 86_400),
    "SqsManagedSseEnabled": _truth("sqs_managed_sse"),
    "FifoQueue": _truth("fifo"),
    "ContentBasedDeduplication": _truth("content_based_deduplication"),
    "DeduplicationScope": _one_of("deduplication_scope", "queue", "messageGroup"),
    "FifoThroughputLimit": _one_of("fifo_throughput_limit", "perQueue", "perMessageGroupId"),
}


# --- rules between attributes ---


def _changed(
    current: QueueAttributes, given: Mapping[str, str], *, is_new: bool, least_retention: int
) -> QueueAttributes:
    _check_writable(given)
    values = {_RULES[name].field: _RULES[name].read(name, text) for name, text in given.items()}
    is_fifo = _check_type(current, values, is_new=is_new)
    if not is_fifo:
        _refuse_fifo_only(given)
    if values.get("retention", least_retention) < least_retention:
        raise errors.invalid_attribute_value("MessageRetentionPeriod")
    values |= _encryption(values)
    changed = msgspec.structs.replace(current, **values)
    if (
        changed.fifo_throughput_limit == "perMessageGroupId"
        and changed.deduplication_scope != "messageGroup"
    ):
        raise errors.invalid_attribute_value(
            "FifoThroughputLimit",
            "The perMessageGroupId value is allowed only when the value for DeduplicationScope is "
            "messageGroup.",
        )
    return changed


def _check_writable(given: Iterable[str]) -> None:
    for name in given:
        if name not in _RULES:
            raise errors.unknown_attribute(name)


def _check_type(current: QueueAttributes, values: dict[str, Any], *, is_new: bool) -> bool:
    wanted = values.get("fifo")
    if is_new:
        if wanted is False:
            raise errors.unknown_attribute("FifoQueue")
        return bool(wanted)
    if wanted is not None and not current.fifo:
        raise errors.unknown_attribute("FifoQueue")
    if wanted is False:
        raise errors.invalid_attribute_value("FifoQueue", "Modifying queue type is not supported.")
    return current.fifo


def _refuse_fifo_only(given: Mapping[str, str]) -> None:
    for name in given:
        if name in _REPORTED_AS_FIFO_ONLY:
            raise errors.invalid_attribute_name(
                f"You can specify the {name} only when FifoQueue is set to true."
            )
        if name in _FIFO_ONLY:
            raise errors.unknown_attribute(name)


def _encryption(values: dict[str, Any]) -> dict[str, Any]:
    """Apply one kind of encryption; setting one turns the other off."""
    if values.get("kms_master_key_id"):
        if values.get("sqs_managed_sse"):
            raise errors.invalid_attribute_name(
                "You can use one type of server-side encryption (SSE) at one time. You can either "
                "enable KMS SSE or SQS SSE.",
            )
        return {"sqs_managed_sse": False}
    return {"kms_master_key_id": None} if values.get("sqs_managed_sse") else {}
