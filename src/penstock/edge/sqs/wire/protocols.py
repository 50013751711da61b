"""Selects the protocol of a request.  Both use the same port and the same paths."""

from __future__ import annotations

import msgspec

from penstock.edge.server.request import Request, Response
from penstock.edge.sqs.errors import SqsError, invalid_action
from penstock.edge.sqs.rules.content import MAX_BYTES
from penstock.edge.sqs.wire import sigv4
from penstock.edge.sqs.wire.model import Input, SqsOutput
from penstock.edge.sqs.wire.operations import ENVELOPE_BYTES, OPERATIONS, SqsOperation, WireProtocol
from penstock.edge.sqs.wire.query_protocol import (
    Nameless,
    QueryProtocol,
    may_name,
    nameless,
    names_in_query,
)

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

    def read(self, request: Request) -> tuple[SqsOperation, Input]:
        target = request.headers.get(TARGET, b"")
        operation = _BY_TARGET.get(target)
        if operation is None:
            raise invalid_action(target.decode("latin-1")[:200].removeprefix(_PREFIX))
        return operation, operation.decode(request.body)

    def answer(
        self, operation: SqsOperation, output: SqsOutput | None, request_id: str
    ) -> Response:
        body = b"" if operation.output_type is None else _encode(output)
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


class NeitherProtocol:
    """For requests that name no operation; the response is always the same."""

    most_bytes = 0

    def read(self, request: Request) -> tuple[SqsOperation, Input]:
        raise Nameless

    def answer(
        self, operation: SqsOperation, output: SqsOutput | None, request_id: str
    ) -> Response:
        return nameless(request_id)

    def refuse(self, error: SqsError, request_id: str) -> Response:
        return nameless(request_id)


JSON = JsonProtocol()
NEITHER = NeitherProtocol()


def of(request: Request) -> WireProtocol:
    """Never raises, so that every error can be rendered in the right protocol; reads no body."""
    headers = request.headers
    # Only the target header is always signed: the content type must not decide how to read a body.
    if TARGET in headers and not (request.query_bytes and _is_presigned_for_query(request)):
        return JSON
    wants_json = b"application/json" in headers.get(b"accept", b"")
    return QueryProtocol(wants_json=wants_json) if may_name(request) else NEITHER


def _is_presigned_for_query(request: Request) -> bool:
    """Whether a presigned URL names the operation in its query string."""
    return sigv4.is_in_query(request) and names_in_query(request)
