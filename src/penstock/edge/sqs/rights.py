"""Who may call which operation of SQS: the role a key needs, and which queues it must be for."""

from __future__ import annotations

from penstock.domain.access.api_key import Role, Scope

_PRODUCE = (Role.PRODUCE, Scope.NAMED)
_CONSUME = (Role.CONSUME, Scope.NAMED)
_OPERATE = (Role.OPERATE, Scope.NAMED)
_ANY = (None, Scope.NAMED)  # a key of any role

RIGHTS: dict[str, tuple[Role | None, Scope]] = {
    "AddPermission": _OPERATE,
    "CancelMessageMoveTask": _OPERATE,
    "ChangeMessageVisibility": _CONSUME,
    "ChangeMessageVisibilityBatch": _CONSUME,
    "CreateQueue": _OPERATE,
    "DeleteMessage": _CONSUME,
    "DeleteMessageBatch": _CONSUME,
    "DeleteQueue": _OPERATE,
    "GetQueueAttributes": _ANY,
    "GetQueueUrl": _ANY,
    "ListDeadLetterSourceQueues": _ANY,
    "ListMessageMoveTasks": _OPERATE,
    "ListQueueTags": _ANY,
    "ListQueues": (None, Scope.FILTERED),
    "PurgeQueue": _OPERATE,
    "ReceiveMessage": _CONSUME,
    "RemovePermission": _OPERATE,
    "SendMessage": _PRODUCE,
    "SendMessageBatch": _PRODUCE,
    "SetQueueAttributes": _OPERATE,
    "StartMessageMoveTask": _OPERATE,
    "TagQueue": _OPERATE,
    "UntagQueue": _OPERATE,
}
