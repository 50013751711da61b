"""AWS JSON 1.0: the operation in a header, the input as the body."""

from __future__ import annotations

import msgspec

from penstock.edge.server.request import Request, Response
from penstock.edge.sqs.errors import SqsError, invalid_action
from penstock.edge.sqs.rules.content import MOST_BYTES
from penstock.edge.sqs.wire.calls import ENVELOPE_BYTES, OPERATIONS, Operation
from penstock.edge.sqs.wire.model import Input, Output

MEDIA = b"application/x-amz-json-1.0"
TARGET = b"x-amz-target"
_PREFIX = "AmazonSQS."
_BY_TARGET = {f"{_PREFIX}{name}".encode(): operation for name, operation in OPERATIONS.items()}
_encode = msgspec.json.Encoder().encode


class _Error(msgspec.Struct):
    type: str = msgspec.field(name="__type")
    message: str


class JsonProtocol:
    most_bytes = 6 * MOST_BYTES + ENVELOPE_BYTES  # \u0041

    def read(self, request: Request) -> tuple[Operation, Input]:
        target = request.headers.get(TARGET, b"")
        operation = _BY_TARGET.get(target)
        if operation is None:
            raise invalid_action(target.decode("latin-1")[:200].removeprefix(_PREFIX))
        return operation, operation.decode(request.body)

    def answer(self, operation: Operation, output: Output | None, request_id: str) -> Response:
        body = b"" if operation.gives is None else _encode(output)
        headers = ((b"x-amzn-RequestId", request_id.encode()),)
        return Response(200, body, content_type=MEDIA, headers=headers)

    def refuse(self, error: SqsError, request_id: str) -> Response:
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
