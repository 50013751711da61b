"""How SQS's queue attributes are kept in the settings that every queue has.

What the core has a word for is kept there, so that all faces obey it; the rest goes into the
queue's annotations, and only SQS reads it again.
"""

from __future__ import annotations

import msgspec

from penstock.domain.limits import SECOND
from penstock.domain.queue import DedupScope, Ordering, QueueSettings, Redelivery
from penstock.domain.retry import Fixed
from penstock.edge.sqs.attributes import QueueAttributes
from penstock.edge.sqs.names import QueueArn, of_arn
from penstock.edge.sqs.policies import (
    RedriveAllowPolicy,
    RedrivePolicy,
    read_redrive_allow_policy,
)

_PREFIX = "sqs."
_SCOPES = {"queue": DedupScope.QUEUE, "messageGroup": DedupScope.GROUP}
_SCOPE_NAMES = {scope: name for name, scope in _SCOPES.items()}
_DEFAULT = QueueAttributes()

# A queue as SQS makes it: nothing dies unless it is told where to, and comes back without delay.
NEW = QueueSettings(max_attempts=None, redelivery=Redelivery.FRONT, backoff=Fixed(0))


def settings_of(wanted: QueueAttributes, before: QueueSettings = NEW) -> QueueSettings:
    """The settings with these attributes; what SQS has no word for stays as it was."""
    policy = wanted.redrive_policy
    target = None if policy is None else of_arn(policy.deadLetterTargetArn)
    return msgspec.structs.replace(
        before,
        delay_ms=wanted.delay * SECOND,
        max_body_bytes=wanted.max_message_size,
        retention_ms=wanted.retention * SECOND,
        wait_ms=wanted.wait_time * SECOND,
        lease_ms=wanted.visibility_timeout * SECOND,
        max_attempts=_attempts(policy, before),
        dead_letter_queue=None if target is None else target.name,
        ordering=Ordering.GROUP if wanted.fifo else Ordering.STANDARD,
        dedup_by_content=wanted.content_based_deduplication,
        dedup_scope=_SCOPES[wanted.deduplication_scope],
        annotations=_annotations(wanted, before),
    )


def attributes_of(
    settings: QueueSettings, *, account: str, region: str, max_body_bytes: int
) -> QueueAttributes:
    """As SQS tells them; of a queue that another face made, as near as SQS can say."""
    kept = settings.annotations.get
    dead_letters, attempts = settings.dead_letter_queue, settings.max_attempts
    policy = None
    if dead_letters is not None and attempts is not None:
        policy = RedrivePolicy(str(QueueArn(region, account, dead_letters)), attempts)
    return QueueAttributes(
        delay=settings.delay_ms // SECOND,
        max_message_size=settings.max_body_bytes or max_body_bytes,
        retention=_seconds(settings.retention_ms, _DEFAULT.retention),
        wait_time=_seconds(settings.wait_ms, 0),
        visibility_timeout=settings.lease_ms // SECOND,
        policy=kept(f"{_PREFIX}Policy"),
        redrive_policy=policy,
        redrive_allow_policy=_allow_policy(kept(f"{_PREFIX}RedriveAllowPolicy")),
        kms_master_key_id=kept(f"{_PREFIX}KmsMasterKeyId"),
        kms_data_key_reuse_period=int(
            kept(f"{_PREFIX}KmsDataKeyReusePeriodSeconds", _DEFAULT.kms_data_key_reuse_period)
        ),
        sqs_managed_sse=kept(f"{_PREFIX}SqsManagedSseEnabled", "true") == "true",
        fifo=settings.ordering is Ordering.GROUP,
        content_based_deduplication=settings.dedup_by_content,
        deduplication_scope=_SCOPE_NAMES[settings.dedup_scope],
        fifo_throughput_limit=kept(f"{_PREFIX}FifoThroughputLimit", _DEFAULT.fifo_throughput_limit),
    )


def allow_policy(settings: QueueSettings) -> RedriveAllowPolicy | None:
    """Which queues may name this one for their dead letters."""
    return _allow_policy(settings.annotations.get(f"{_PREFIX}RedriveAllowPolicy"))


def _attempts(policy: RedrivePolicy | None, before: QueueSettings) -> int | None:
    if policy is not None:
        return policy.maxReceiveCount
    # Without a place for dead letters SQS gives up on nothing; a limit that another face has set
    # goes with the policy that it was a part of, and otherwise stays.
    return None if before.dead_letter_queue is not None else before.max_attempts


def _annotations(wanted: QueueAttributes, before: QueueSettings) -> dict[str, str]:
    allow = wanted.redrive_allow_policy
    reuse = wanted.kms_data_key_reuse_period
    limit = wanted.fifo_throughput_limit
    ours = {
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


def _allow_policy(text: str | None) -> RedriveAllowPolicy | None:
    return None if text is None else read_redrive_allow_policy(text)


def _seconds(ms: int | None, default: int) -> int:
    return default if ms is None else ms // SECOND
