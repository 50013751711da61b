"""The SQS API: the same operations in both protocols, on `/` and on queue paths."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

from penstock.domain.access.api_key import ANYONE, Caller
from penstock.domain.delivery.addresses import networks
from penstock.domain.errors import PenstockError, ShuttingDown, TooLarge
from penstock.edge.server.app import refuse_pages
from penstock.edge.server.errors import error_response, unexpected
from penstock.edge.server.request import Handler, Request, Respond, Response
from penstock.edge.server.router import HttpRoute
from penstock.edge.sqs.call import AnyAnswer, PendingAnswer, QueueLookup, SqsCall
from penstock.edge.sqs.errors import SqsError, from_core, method_not_allowed
from penstock.edge.sqs.move_tasks import MoveTaskActions
from penstock.edge.sqs.queues import QueueActions
from penstock.edge.sqs.receiving import ReceiveActions
from penstock.edge.sqs.sending import SendActions
from penstock.edge.sqs.visibility import VisibilityActions
from penstock.edge.sqs.wire import sigv4
from penstock.edge.sqs.wire.model import Input, SqsOutput
from penstock.edge.sqs.wire.operations import JSON, OPERATIONS, TARGET, SqsOperation, WireProtocol
from penstock.edge.sqs.wire.query_protocol import (
    OperationMissing,
    QueryProtocol,
    may_name,
    names_in_query,
    unknown_operation,
)
from penstock.runtime.waiting_claims import ClaimWaiter
from penstock.wiring.broker import Broker

SQS = "sqs"
_QUEUE_PATH = "/{account:[0-9]{12}}/{queue}"


class SqsApi:
    def __init__(self, broker: Broker, waiting: ClaimWaiter, *, scheme: str, home: Handler) -> None:
        self._settings = broker.settings.sqs
        self._keyring = broker.keyring
        self._wall = broker.wall
        self._scheme = scheme
        self._proxies = networks(broker.settings.server.trusted_proxies or "")
        self._home = home  # what a browser gets at `/`
        self._ids = request_ids(broker.dice.digits(20))
        self._operations = _operations(broker, waiting)

    def routes(self) -> list[HttpRoute]:
        return [
            HttpRoute(
                method=method,
                path=path,
                handler=self.handle,
                name=SQS,
                takes_any_media=True,
                refuse=self.refuse,
            )
            for path in ("/", "//", _QUEUE_PATH, f"{_QUEUE_PATH}/")
            for method in ("POST", "GET")
        ]

    def handle(self, request: Request, respond: Respond) -> Awaitable[Response] | None:
        protocol, request_id = protocol_of(request), next(self._ids)
        is_post = request.method == "POST"
        if protocol is UNKNOWN and not is_post and _is_for_the_page(request):
            return self._home(request, respond)
        try:
            if not is_post:
                _refuse_pages(request)
            if len(request.body) > protocol.most_bytes:
                raise TooLarge(f"a request takes at most {protocol.most_bytes} bytes")
            caller = self._signer(request) if self._keyring.is_needed else ANYONE
            operation, given = protocol.read(request)
            call = SqsCall(
                given, request, self._settings, self._scheme, self._proxies, caller, operation.role
            )
            result = self._operations[operation.name](call)
        except Exception as error:
            respond(_refusal(protocol, error, request_id))
            return None
        if not isinstance(result, PendingAnswer):
            return _answer_later(protocol, operation, result, request_id)
        # No task: the store calls back.
        result.ticket.then(partial(_finish, protocol, operation, result, request_id, respond))
        return None

    def refuse(self, request: Request, error: PenstockError) -> Response:
        """Render an error of the HTTP server in the protocol of the request."""
        return protocol_of(request).refuse(from_core(error), next(self._ids))

    def _signer(self, request: Request) -> Caller:
        signer_of = self._keyring.signer
        return sigv4.verify(request, now=self._wall.now(), signer_of=signer_of).caller


def _is_for_the_page(request: Request) -> bool:
    """Whether a browser requests the page at `/`; a signed request comes from an SQS client."""
    return request.path == "/" and not (sigv4.is_in_header(request) or sigv4.is_in_query(request))


def request_ids(digits: str) -> Iterator[str]:
    """Unique ids in the format of AWS: a random start and a counter."""
    start = f"{digits[:8]}-{digits[8:12]}-4{digits[12:15]}-8{digits[15:18]}-"
    for count in itertools.count(10**11):  # twelve digits; faster than formatting hexadecimal
        yield f"{start}{count}"


class UnknownProtocol:
    """For requests that name no operation; the response is always the same."""

    most_bytes = 0

    def read(self, request: Request) -> tuple[SqsOperation, Input]:
        raise OperationMissing

    def answer(
        self, operation: SqsOperation, output: SqsOutput | None, request_id: str
    ) -> Response:
        return unknown_operation(request_id)

    def refuse(self, error: SqsError, request_id: str) -> Response:
        return unknown_operation(request_id)


UNKNOWN = UnknownProtocol()


def protocol_of(request: Request) -> WireProtocol:
    """Select the protocol of a request: both use the same port and the same paths.

    Never raises, so that every error can be rendered in the right protocol; reads no body.
    """
    headers = request.headers
    # Only the target header is always signed: the content type must not decide how to read a body.
    if TARGET in headers and not (request.query_bytes and _is_presigned_for_query(request)):
        return JSON
    wants_json = b"application/json" in headers.get(b"accept", b"")
    return QueryProtocol(wants_json=wants_json) if may_name(request) else UNKNOWN


def _is_presigned_for_query(request: Request) -> bool:
    """Whether a presigned URL names the operation in its query string."""
    return sigv4.is_in_query(request) and names_in_query(request)


Operate = Callable[[SqsCall], AnyAnswer]


def _operations(broker: Broker, waiting: ClaimWaiter) -> dict[str, Operate]:
    lookup = QueueLookup(broker.directory, broker.queues, broker.settings.sqs)
    limits = broker.settings.limits
    most = limits.max_body_bytes
    sending = SendActions(broker.messages, broker.queues, lookup, max_bytes=most)
    receiving = ReceiveActions(
        broker.messages, broker.queues, lookup, waiting, max_wait_ms=limits.max_wait_ms
    )
    visibility = VisibilityActions(broker.messages, lookup, broker.clock)
    queues = QueueActions(broker.queues, lookup, broker.clock, max_body_bytes=most)
    moving = MoveTaskActions(broker.moves, broker.queues)
    handlers: dict[str, Operate] = {
        "AddPermission": queues.add_permission,
        "CancelMessageMoveTask": moving.cancel,
        "ChangeMessageVisibility": visibility.change,
        "ChangeMessageVisibilityBatch": visibility.change_batch,
        "CreateQueue": queues.create,
        "DeleteMessage": visibility.delete,
        "DeleteMessageBatch": visibility.delete_batch,
        "DeleteQueue": queues.delete,
        "GetQueueAttributes": queues.get_attributes,
        "GetQueueUrl": queues.get_url,
        "ListDeadLetterSourceQueues": queues.list_sources,
        "ListMessageMoveTasks": moving.list,
        "ListQueueTags": queues.list_tags,
        "ListQueues": queues.list,
        "PurgeQueue": queues.purge,
        "ReceiveMessage": receiving.receive,
        "RemovePermission": queues.remove_permission,
        "SendMessage": sending.send,
        "SendMessageBatch": sending.send_batch,
        "SetQueueAttributes": queues.set_attributes,
        "StartMessageMoveTask": moving.start,
        "TagQueue": queues.tag,
        "UntagQueue": queues.untag,
    }
    # Fail at startup, not at the first request, if an operation has no handler.
    return {name: handlers[name] for name in OPERATIONS}


def _refuse_pages(request: Request) -> None:
    """Reject requests from other sites: SQS operations can be called with GET."""
    if request.method == "HEAD":  # a HEAD must not run an operation
        raise method_not_allowed(request.method)
    refuse_pages(request.headers)


def _finish(
    protocol: WireProtocol,
    operation: SqsOperation,
    pending: PendingAnswer[Any, Any],
    request_id: str,
    respond: Respond,
    answer: Any,
) -> None:
    try:
        if isinstance(answer, BaseException):
            if isinstance(answer, PenstockError) and pending.error_of is not None:
                answer = pending.error_of(answer)
            raise answer
        output = pending.finish(answer)
        if isinstance(output, SqsOutput) or output is None:
            response = protocol.answer(operation, output, request_id)
        else:
            _respond_later(protocol, operation, output, request_id, respond)
            return
    except Exception as error:
        response = _refusal(protocol, error, request_id)
    respond(response)


_tasks: set[asyncio.Task[Response]] = set()  # the event loop keeps only weak references


def _respond_later(
    protocol: WireProtocol,
    operation: SqsOperation,
    result: Awaitable[Any],
    request_id: str,
    respond: Respond,
) -> None:
    task = asyncio.ensure_future(_answer_later(protocol, operation, result, request_id))
    _tasks.add(task)

    def done(task: asyncio.Task[Response]) -> None:
        _tasks.discard(task)
        if task.cancelled():
            closing = ShuttingDown("this node is shutting down; try again or use another node")
            respond(_refusal(protocol, closing, request_id))
        else:
            respond(task.result())

    task.add_done_callback(done)


async def _answer_later(
    protocol: WireProtocol, operation: SqsOperation, result: Awaitable[Any], request_id: str
) -> Response:
    try:
        return protocol.answer(operation, await result, request_id)
    except Exception as error:
        return _refusal(protocol, error, request_id)


def _refusal(protocol: WireProtocol, error: Exception, request_id: str) -> Response:
    if isinstance(error, PenstockError):
        error_response(error)  # logs internal errors
    elif not isinstance(error, SqsError):
        unexpected(error)
    return protocol.refuse(from_core(error), request_id)
