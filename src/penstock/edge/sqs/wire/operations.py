"""The operations of SQS with their roles, inputs and outputs, and the JSON protocol."""

from __future__ import annotations

import re

import msgspec

from penstock.domain.access.api_key import Role, Scope
from penstock.edge.aws.errors import AwsError, invalid_action
from penstock.edge.aws.operation import AwsOperation, AwsOutput, Input
from penstock.edge.server.request import Request, Response
from penstock.edge.sqs.errors import invalid_message_contents
from penstock.edge.sqs.rules.content import MAX_BYTES
from penstock.edge.sqs.wire import model

_PRODUCE = (Role.PRODUCE, Scope.NAMED)
_CONSUME = (Role.CONSUME, Scope.NAMED)
_OPERATE = (Role.OPERATE, Scope.NAMED)
_ANY = (None, Scope.NAMED)  # a key of any role

# The role a key needs, and which queues it must cover.
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

_INPUT = "Request"  # the suffix of input types
ENVELOPE_BYTES = 320 * 1024  # allowance for the part of a request around its messages
_SENDS = ("SendMessage", "SendMessageBatch")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class SqsOperation(AwsOperation):
    __slots__ = ()

    def __init__(self, name: str) -> None:
        output: type[AwsOutput] | None = getattr(model, f"{name}Result", None)
        super().__init__(name, RIGHTS[name], getattr(model, f"{name}{_INPUT}"), output)

    def _unreadable(self, body: bytes, error: Exception) -> AwsError:
        # JSON decoders reject half a surrogate pair; SQS has an error of its own for it.
        if self.name in _SENDS and _SURROGATE.search(body):
            return invalid_message_contents()
        return super()._unreadable(body, error)


# One for each input of the model.
OPERATIONS = {
    name: SqsOperation(name)
    for name in sorted(n.removesuffix(_INPUT) for n in vars(model) if n.endswith(_INPUT))
}


MEDIA = b"application/x-amz-json-1.0"
TARGET = b"x-amz-target"
_PREFIX = "AmazonSQS."
_BY_TARGET = {f"{_PREFIX}{name}".encode(): operation for name, operation in OPERATIONS.items()}
_encode = msgspec.json.Encoder().encode


class _Error(msgspec.Struct):
    type: str = msgspec.field(name="__type")
    message: str


class JsonProtocol:
    """AWS JSON 1.0: the operation in a header, the input as the body."""

    most_bytes = 6 * MAX_BYTES + ENVELOPE_BYTES  # \u0041

    def read(self, request: Request) -> tuple[AwsOperation, Input]:
        target = request.headers.get(TARGET, b"")
        operation = _BY_TARGET.get(target)
        if operation is None:
            raise invalid_action(target.decode("latin-1")[:200].removeprefix(_PREFIX))
        return operation, operation.decode(request.body)

    def answer(
        self, operation: AwsOperation, output: AwsOutput | None, request_id: str
    ) -> Response:
        body = b"" if operation.output_type is None else _encode(output)
        headers = ((b"x-amzn-RequestId", request_id.encode()),)
        return Response(200, body, content_type=MEDIA, headers=headers)

    def refuse(self, error: AwsError, request_id: str) -> Response:
        whose = "Sender" if error.sender else "Receiver"
        return Response(
            error.status,
            _encode(_Error(error.shape, error.message)),
            content_type=MEDIA,
            headers=(
                (b"x-amzn-RequestId", request_id.encode()),
                (b"x-amzn-query-error", f"{error.code};{whose}".encode()),
            ),
        )


JSON = JsonProtocol()
