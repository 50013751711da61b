"""How the queue attributes of SQS are stored in queue settings.

Attributes with a counterpart in the core become that setting, so that all APIs honour them; the
others are stored as annotations, which only SQS reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from penstock.domain.limits import SECOND
from penstock.domain.message.retry import Fixed
from penstock.domain.queue.queue import DedupScope, Ordering, QueueSettings, Redelivery
from penstock.edge.aws.errors import AwsError
from penstock.edge.sqs.rules import attributes, content
from penstock.edge.sqs.rules.attributes import QueueAttributes
from penstock.edge.sqs.rules.names import QueueArn, of_arn
from penstock.edge.sqs.rules.policies import RedriveAllowPolicy, RedrivePolicy

_PREFIX = "sqs."
_PURGED_AT = f"{_PREFIX}PurgedAt"
_INSTANT = re.compile("[0-9]{1,15}")
_SCOPES = {"queue": DedupScope.QUEUE, "messageGroup": DedupScope.GROUP}
_SCOPE_NAMES = {scope: name for name, scope in _SCOPES.items()}
_DEFAULT = QueueAttributes()

# The defaults of SQS: without a dead-letter queue messages never die, and retries have no delay.
NEW = QueueSettings(max_attempts=None, redelivery=Redelivery.FRONT, backoff=Fixed(0))


def new_settings(wanted: QueueAttributes) -> QueueSettings:
    """The settings of a queue created through SQS."""
    settings = {name: value for keep in _KEPT.values() for name, value in keep(wanted).items()}
    created = msgspec.structs.replace(NEW, **settings)
    return msgspec.structs.replace(created, annotations=_annotations(wanted, created))


def changed_settings(
    before: QueueSettings, present: QueueAttributes, wanted: QueueAttributes
) -> QueueSettings:
    """The settings with the attributes that differ from the present ones.

    Everything else stays, including values that SQS cannot express: another API may have set half
    a second, or unlimited retention.
    """
    settings: dict[str, Any] = {}
    for field, keep in _KEPT.items():
        if field not in _FIXED and getattr(wanted, field) != getattr(present, field):
            settings |= keep(wanted)
    annotations = _annotations(wanted, before)
    return msgspec.structs.replace(before, **settings, annotations=annotations)


def attributes_of(
    settings: QueueSettings, *, account: str, region: str, max_body_bytes: int
) -> QueueAttributes:
    """The attributes of a queue; settings from other APIs as closely as SQS can express them."""
    kept = _reader(settings)
    scope = kept("DeduplicationScope", _SCOPE_NAMES[settings.dedup_scope])
    dead_letters, attempts = settings.dead_letter_queue, settings.max_attempts
    policy = None
    if dead_letters is not None and attempts is not None:
        policy = RedrivePolicy(str(QueueArn(region, account, dead_letters)), attempts)
    return QueueAttributes(
        delay=settings.delay_ms // SECOND,
        max_message_size=min(settings.max_body_bytes or max_body_bytes, content.MAX_BYTES),
        retention=_seconds(settings.retention_ms, _DEFAULT.retention),
        wait_time=_seconds(settings.wait_ms, 0),
        visibility_timeout=settings.lease_ms // SECOND,
        policy=kept("Policy", None),
        redrive_policy=policy,
        redrive_allow_policy=allow_policy(settings),
        kms_master_key_id=kept("KmsMasterKeyId", None),
        kms_data_key_reuse_period=kept(
            "KmsDataKeyReusePeriodSeconds", _DEFAULT.kms_data_key_reuse_period
        ),
        sqs_managed_sse=kept("SqsManagedSseEnabled", True),
        fifo=settings.ordering is Ordering.GROUP,
        content_based_deduplication=settings.dedup_by_content,
        deduplication_scope=scope,
        fifo_throughput_limit=(  # another API may have changed the scope that this depends on
            kept("FifoThroughputLimit", _DEFAULT.fifo_throughput_limit)
            if _SCOPES[scope] is DedupScope.GROUP
            else _DEFAULT.fifo_throughput_limit
        ),
    )


def allow_policy(settings: QueueSettings) -> RedriveAllowPolicy | None:
    """Which queues may use this one as their dead-letter queue."""
    allowed: RedriveAllowPolicy | None = _reader(settings)("RedriveAllowPolicy", None)
    return allowed


def purged_at(settings: QueueSettings) -> int | None:
    text = settings.annotations.get(_PURGED_AT, "")
    return int(text) if _INSTANT.fullmatch(text) else None


def with_purge(settings: QueueSettings, *, now: int) -> QueueSettings:
    annotations = {**settings.annotations, _PURGED_AT: str(now)}
    return msgspec.structs.replace(settings, annotations=annotations)


def _reader(settings: QueueSettings) -> Callable[[str, Any], Any]:
    """Read attributes from annotations; ignores invalid ones, written by other APIs."""

    def read(name: str, default: Any) -> Any:
        text = settings.annotations.get(_PREFIX + name)
        if text is None:
            return default
        try:
            return attributes.read_one(name, text)
        except AwsError:
            return default

    return read


def _dead_letters(wanted: QueueAttributes) -> dict[str, Any]:
    """Without a dead-letter queue, SQS retries forever."""
    policy = wanted.redrive_policy
    target = None if policy is None else of_arn(policy.deadLetterTargetArn)
    if policy is None or target is None:
        return {"dead_letter_queue": None, "max_attempts": None}
    return {"dead_letter_queue": target.name, "max_attempts": policy.maxReceiveCount}


# A group whose message was received and came back goes behind the groups that have waited.
_FIFO = {"ordering": Ordering.GROUP, "redelivery": Redelivery.BACK}

# As on AWS, a later change is shown, and has no effect.
_FIXED = ("deduplication_scope",)

# Attributes that are stored as settings; the others are annotations.
_KEPT: dict[str, Callable[[QueueAttributes], dict[str, Any]]] = {
    "delay": lambda wanted: {"delay_ms": wanted.delay * SECOND},
    "max_message_size": lambda wanted: {"max_body_bytes": wanted.max_message_size},
    "retention": lambda wanted: {"retention_ms": wanted.retention * SECOND},
    "wait_time": lambda wanted: {"wait_ms": wanted.wait_time * SECOND},
    "visibility_timeout": lambda wanted: {"lease_ms": wanted.visibility_timeout * SECOND},
    "redrive_policy": _dead_letters,
    "fifo": lambda wanted: _FIFO if wanted.fifo else {"ordering": Ordering.STANDARD},
    "content_based_deduplication": lambda wanted: {
        "dedup_by_content": wanted.content_based_deduplication
    },
    "deduplication_scope": lambda wanted: {"dedup_scope": _SCOPES[wanted.deduplication_scope]},
}


def _annotations(wanted: QueueAttributes, before: QueueSettings) -> dict[str, str]:
    allow = wanted.redrive_allow_policy
    reuse = wanted.kms_data_key_reuse_period
    limit = wanted.fifo_throughput_limit
    scope = wanted.deduplication_scope
    ours = {
        "DeduplicationScope": None if _SCOPES[scope] is before.dedup_scope else scope,
        "Policy": wanted.policy,
        "RedriveAllowPolicy": None if allow is None else str(allow),
        "KmsMasterKeyId": wanted.kms_master_key_id,
        "KmsDataKeyReusePeriodSeconds": (
            None if reuse == _DEFAULT.kms_data_key_reuse_period else str(reuse)
        ),
        "SqsManagedSseEnabled": None if wanted.sqs_managed_sse else "false",
        "FifoThroughputLimit": None if limit == _DEFAULT.fifo_throughput_limit else limit,
    }
    names = {_PREFIX + name for name in ours}
    others = {name: text for name, text in before.annotations.items() if name not in names}
    return others | {_PREFIX + name: text for name, text in ours.items() if text is not None}


def _seconds(ms: int | None, default: int) -> int:
    return default if ms is None else ms // SECOND
