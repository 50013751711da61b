"""The SQS API: the same operations in both protocols, on `/` and on queue paths."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from penstock.domain.access.api_key import Caller
from penstock.domain.errors import PenstockError
from penstock.edge.aws import sigv4
from penstock.edge.aws.api import AnyAnswer, AwsApi
from penstock.edge.aws.errors import AwsError
from penstock.edge.aws.operation import AwsOperation, AwsOutput, Input, WireProtocol
from penstock.edge.aws.query_protocol import (
    OperationMissing,
    may_name,
    names_in_query,
    unknown_operation,
)
from penstock.edge.server.request import Handler, Request, Respond, Response
from penstock.edge.server.router import HttpRoute
from penstock.edge.sns.requests import is_for_sns
from penstock.edge.sqs.call import QueueLookup, SqsCall
from penstock.edge.sqs.errors import from_core, method_not_allowed
from penstock.edge.sqs.move_tasks import MoveTaskActions
from penstock.edge.sqs.queues import QueueActions
from penstock.edge.sqs.receiving import ReceiveActions
from penstock.edge.sqs.sending import SendActions
from penstock.edge.sqs.visibility import VisibilityActions
from penstock.edge.sqs.wire.operations import JSON, OPERATIONS, TARGET
from penstock.edge.sqs.wire.query import SqsQueryProtocol
from penstock.runtime.waiting_claims import ClaimWaiter
from penstock.wiring.broker import Broker

SQS = "sqs"
_QUEUE_PATH = "/{account:[0-9]{12}}/{queue}"


class SqsApi(AwsApi):
    service = SQS

    def __init__(
        self,
        broker: Broker,
        waiting: ClaimWaiter,
        *,
        scheme: str,
        home: Handler,
        sns: Handler | None = None,
    ) -> None:
        """`home`: what a browser gets at `/`; `sns`: answers requests of SNS's clients."""
        super().__init__(broker, scheme=scheme)
        self._home = home
        self._sns = sns
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
        protocol = protocol_of(request)
        if protocol is not JSON:
            if self._sns is not None and is_for_sns(request):
                return self._sns(request, respond)
            if protocol is UNKNOWN and request.method != "POST" and _is_for_the_page(request):
                return self._home(request, respond)
        return self.answer(protocol, request, respond)

    def refuse(self, request: Request, error: PenstockError) -> Response:
        return self.refuse_with(protocol_of(request), error)

    def run(
        self, operation: AwsOperation, given: Input, request: Request, caller: Caller
    ) -> AnyAnswer:
        call = SqsCall(
            given,
            request,
            self.settings.sqs,
            self.scheme,
            self.proxies,
            caller,
            operation.role,
        )
        return self._operations[operation.name](call)

    def error_of(self, error: Exception) -> AwsError:
        return from_core(error)

    def refuse_pages(self, request: Request) -> None:
        if request.method == "HEAD":  # a HEAD must not run an operation
            raise method_not_allowed(request.method)
        super().refuse_pages(request)


def _is_for_the_page(request: Request) -> bool:
    """Whether a browser requests the page at `/`; a signed request comes from an SQS client."""
    return request.path == "/" and not (sigv4.is_in_header(request) or sigv4.is_in_query(request))


class UnknownProtocol:
    """For requests that name no operation; the response is always the same."""

    most_bytes = 0

    def read(self, request: Request) -> tuple[AwsOperation, Input]:
        raise OperationMissing

    def answer(
        self, operation: AwsOperation, output: AwsOutput | None, request_id: str
    ) -> Response:
        return unknown_operation(request_id)

    def refuse(self, error: AwsError, request_id: str) -> Response:
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
    return SqsQueryProtocol(wants_json=wants_json) if may_name(request) else UNKNOWN


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
        broker.messages,
        broker.queues,
        lookup,
        waiting,
        broker.envelope_signer,
        max_wait_ms=limits.max_wait_ms,
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
