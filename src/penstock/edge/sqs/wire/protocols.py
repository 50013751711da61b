"""Which protocol a request speaks.  Both come to the same port and to the same paths."""

from __future__ import annotations

from penstock.edge.server.request import Request, Response
from penstock.edge.sqs.errors import SqsError
from penstock.edge.sqs.wire import sigv4
from penstock.edge.sqs.wire.calls import Operation, WireProtocol
from penstock.edge.sqs.wire.json_protocol import TARGET, JsonProtocol
from penstock.edge.sqs.wire.model import Input, Output
from penstock.edge.sqs.wire.query_protocol import (
    Nameless,
    QueryProtocol,
    may_name,
    nameless,
    names_in_query,
)


class NeitherProtocol:
    """For requests that name no operation: whatever happens, SQS says this."""

    most_bytes = 0

    def read(self, request: Request) -> tuple[Operation, Input]:
        raise Nameless

    def answer(self, operation: Operation, output: Output | None, request_id: str) -> Response:
        return nameless(request_id)

    def refuse(self, error: SqsError, request_id: str) -> Response:
        return nameless(request_id)


JSON = JsonProtocol()
NEITHER = NeitherProtocol()


def of(request: Request) -> WireProtocol:
    """Never raises, so that every refusal can be told in the right words; reads no body."""
    headers = request.headers
    # A target is signed, a content type need not be: it must not make something else of a body.
    if TARGET in headers and not (request.query_bytes and _is_presigned_for_query(request)):
        return JSON
    wants_json = b"application/json" in headers.get(b"accept", b"")
    return QueryProtocol(wants_json=wants_json) if may_name(request) else NEITHER


def _is_presigned_for_query(request: Request) -> bool:
    """What such a URL is for stands in its query string."""
    return sigv4.is_in_query(request) and names_in_query(request)
