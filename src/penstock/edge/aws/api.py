"""Answers requests of an API of AWS: checks the signature, reads, runs, renders."""

from __future__ import annotations

import asyncio
import itertools
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any, Generic, TypeVar

import msgspec

from penstock.domain.access.api_key import ANYONE, Caller
from penstock.domain.delivery.addresses import Network, is_within, networks
from penstock.domain.errors import PenstockError, ShuttingDown, TooLarge
from penstock.edge.aws import sigv4
from penstock.edge.aws.errors import AwsError
from penstock.edge.aws.operation import AwsOperation, AwsOutput, Input, WireProtocol
from penstock.edge.server.app import refuse_pages
from penstock.edge.server.errors import error_response, unexpected
from penstock.edge.server.request import Request, Respond, Response
from penstock.ports.ticket import Ticket
from penstock.ports.unit_of_work import Work
from penstock.wiring.broker import Broker

A = TypeVar("A")
R = TypeVar("R")

_SCHEMES = ("http", "https")


class PendingAnswer(msgspec.Struct, Generic[A, R], frozen=True):
    """The fast path: a ticket of the store, and a callback for its answer instead of a task."""

    ticket: Ticket[A] | Work[A]
    finish: Callable[[A], R]  # returns an output, None, or an awaitable of either
    error_of: Callable[[PenstockError], PenstockError] | None = None  # translates an error


# What an operation returns; errors that it raises, now or later, are rendered as AWS's errors.
AnyAnswer = PendingAnswer[Any, Any] | Awaitable[AwsOutput | None]


class AwsApi(ABC):
    service: str  # in the scope of signatures

    def __init__(self, broker: Broker, *, scheme: str) -> None:
        self.settings = broker.settings
        self.scheme = scheme  # of this server, without a proxy
        self.proxies = networks(broker.settings.server.trusted_proxies or "")
        self._keyring = broker.keyring
        self._wall = broker.wall
        self._ids = request_ids(broker.dice.digits(20))

    @abstractmethod
    def run(
        self, operation: AwsOperation, given: Input, request: Request, caller: Caller
    ) -> AnyAnswer: ...

    @abstractmethod
    def error_of(self, error: Exception) -> AwsError:
        """The API's form of an error of the core."""

    def answer(
        self, protocol: WireProtocol, request: Request, respond: Respond
    ) -> Awaitable[Response] | None:
        request_id = next(self._ids)
        try:
            if request.method != "POST":
                self.refuse_pages(request)
            if len(request.body) > protocol.most_bytes:
                raise TooLarge(f"a request takes at most {protocol.most_bytes} bytes")
            caller = self.caller_of(request) if self._keyring.is_needed else ANYONE
            operation, given = protocol.read(request)
            result = self.run(operation, given, request, caller)
        except Exception as error:
            respond(self._refusal(protocol, error, request_id))
            return None
        if not isinstance(result, PendingAnswer):
            return self._answer_later(protocol, operation, result, request_id)
        # No task: the store calls back.
        result.ticket.then(partial(self._finish, protocol, operation, result, request_id, respond))
        return None

    def refuse_with(self, protocol: WireProtocol, error: PenstockError) -> Response:
        """Render an error of the HTTP server in the protocol of the request."""
        return protocol.refuse(self.error_of(error), next(self._ids))

    def refuse_pages(self, request: Request) -> None:
        """Reject requests from other sites: operations can be called with GET."""
        refuse_pages(request.headers)

    def caller_of(self, request: Request) -> Caller:
        signer_of, now = self._keyring.signer, self._wall.now()
        return sigv4.verify(request, now=now, signer_of=signer_of, service=self.service).caller

    def _finish(
        self,
        protocol: WireProtocol,
        operation: AwsOperation,
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
            if isinstance(output, AwsOutput) or output is None:
                response = protocol.answer(operation, output, request_id)
            else:
                self._respond_later(protocol, operation, output, request_id, respond)
                return
        except Exception as error:
            response = self._refusal(protocol, error, request_id)
        respond(response)

    def _respond_later(
        self,
        protocol: WireProtocol,
        operation: AwsOperation,
        result: Awaitable[Any],
        request_id: str,
        respond: Respond,
    ) -> None:
        task = asyncio.ensure_future(self._answer_later(protocol, operation, result, request_id))
        _tasks.add(task)

        def done(task: asyncio.Task[Response]) -> None:
            _tasks.discard(task)
            if task.cancelled():
                closing = ShuttingDown("this node is shutting down; try again or use another node")
                respond(self._refusal(protocol, closing, request_id))
            else:
                respond(task.result())

        task.add_done_callback(done)

    async def _answer_later(
        self,
        protocol: WireProtocol,
        operation: AwsOperation,
        result: Awaitable[Any],
        request_id: str,
    ) -> Response:
        try:
            return protocol.answer(operation, await result, request_id)
        except Exception as error:
            return self._refusal(protocol, error, request_id)

    def _refusal(self, protocol: WireProtocol, error: Exception, request_id: str) -> Response:
        if isinstance(error, PenstockError):
            error_response(error)  # logs internal errors
        elif not isinstance(error, AwsError):
            unexpected(error)
        return protocol.refuse(self.error_of(error), request_id)


_tasks: set[asyncio.Task[Response]] = set()  # the event loop keeps only weak references


def request_ids(digits: str) -> Iterator[str]:
    """Unique ids in the format of AWS: a random start and a counter."""
    start = f"{digits[:8]}-{digits[8:12]}-4{digits[12:15]}-8{digits[15:18]}-"
    for count in itertools.count(10**11):  # twelve digits; faster than formatting hexadecimal
        yield f"{start}{count}"


def base_of(
    request: Request,
    *,
    public_url: str | None,
    scheme: str,
    proxies: list[Network],
    caller: Caller,
) -> str:
    """The start of URLs in answers: `public_url`, or the address that the client used."""
    if public_url is not None:
        return public_url
    headers = request.headers
    host = _first(headers, b"host") or "localhost"
    if not proxies or not is_within(request.client, proxies):
        return f"{scheme}://{host}"
    if caller is ANYONE:  # otherwise the host is signed, and a proxy must not change it
        host = _forwarded_host(headers) or host
    given = _first(headers, b"x-forwarded-proto").lower()
    return f"{given if given in _SCHEMES else scheme}://{host}"


def _forwarded_host(headers: dict[bytes, bytes]) -> str:
    """The forwarded host with its port, which many proxies send in a separate header."""
    host = _first(headers, b"x-forwarded-host")
    port = _first(headers, b"x-forwarded-port")
    has_port = ":" in host.rpartition("]")[2]
    return f"{host}:{port}" if host and port.isdecimal() and not has_port else host


def _first(headers: dict[bytes, bytes], name: bytes) -> str:
    """The first value of the header, set by the proxy closest to the client."""
    return headers.get(name, b"").partition(b",")[0].strip().decode("latin-1")
