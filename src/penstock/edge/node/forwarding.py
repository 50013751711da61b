"""A front forwards the requests that it does not serve itself, and the writer serves them.

The writer serves them with the routes of a whole server, so that metrics, health, the console and
live events are those of the node, whichever front is asked.  It also checks the caller's access.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from penstock.api.overview import Health, Part
from penstock.domain.errors import OutcomeUnknown, PenstockError, StoreUnavailable
from penstock.edge.native.operations.overview import FAILING
from penstock.edge.server.errors import error_response, unexpected
from penstock.edge.server.request import Handler, Request, Respond, Response, json_response
from penstock.edge.server.stream import Stream
from penstock.ports.link import (
    ForwardedRequest,
    ForwardedResponse,
    ResponseReceiver,
    WriterLink,
)
from penstock.version import __version__

HEALTH_PATHS = frozenset({"/healthz", "/readyz"})
HEALTH_PATIENCE_S = 3.0  # longer than the writer waits for its store
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class Forwarder:
    """The front's side: a handler for any request."""

    def __init__(self, link: WriterLink) -> None:
        self._link = link

    def handle(self, request: Request, respond: Respond) -> Awaitable[Response]:
        # An awaitable, so that requests pipelined after this one wait for its response.
        if request.path in HEALTH_PATHS:
            return self._check_health(request)
        return self._forward(request)

    async def _check_health(self, request: Request) -> Response:
        try:
            async with asyncio.timeout(HEALTH_PATIENCE_S):
                return await self._forward(request)
        except (StoreUnavailable, TimeoutError) as error:
            text = str(error) or f"it has not answered within {HEALTH_PATIENCE_S:g} s"
            if request.path == "/healthz":
                part = Part(name="writer", state="failed", message=text)
                return json_response(Health(FAILING, __version__, (part,)), 503)
            return error_response(StoreUnavailable(text))

    async def _forward(self, request: Request) -> Response:
        link, receiver = self._link, _Receiver()
        number = link.forward(
            ForwardedRequest(
                request.method,
                request.path,
                request.query_bytes,
                request.headers,
                request.body,
                request.client,
            ),
            receiver,
        )
        try:
            response = await receiver.response
        except asyncio.CancelledError:
            link.cancel(number)
            raise
        if not response.is_stream:
            return Response(response.status, response.body, response.content_type, response.headers)
        return receiver.stream(response, lambda _: link.cancel(number))


class _Receiver:
    def __init__(self) -> None:
        self.response: asyncio.Future[ForwardedResponse] = (
            asyncio.get_running_loop().create_future()
        )
        self._stream: Stream | None = None
        self._early: list[bytes | None] = []  # parts that came before the stream was made

    def respond(self, response: ForwardedResponse) -> None:
        if not self.response.done():
            self.response.set_result(response)

    def send(self, data: bytes) -> None:
        if self._stream is None:
            self._early.append(data)
        else:
            self._stream.send(data)

    def end(self) -> None:
        if not self.response.done():
            self.response.set_exception(OutcomeUnknown("the writer exited before it answered"))
        elif self._stream is None:
            self._early.append(None)
        else:
            self._stream.end()

    def stream(self, response: ForwardedResponse, on_lost: Callable[[Stream], None]) -> Stream:
        self._stream = stream = Stream(
            on_lost=on_lost, content_type=response.content_type, headers=response.headers
        )
        for data in self._early:
            if data is None:
                stream.end()
            else:
                stream.send(data)
        return stream


class ForwardedRequests:
    """The writer's side.  `on_change` is called with the queue of a request that may change it."""

    def __init__(self, app: Handler, *, on_change: Callable[[str], None]) -> None:
        self._app = app
        self._on_change = on_change

    def serve(
        self, forwarded: ForwardedRequest, receiver: ResponseReceiver
    ) -> Callable[[], None] | None:
        exchange = _Exchange(forwarded, receiver, self._on_change)
        return exchange.cancel if exchange.start(self._app) else None


class _Exchange:
    def __init__(
        self,
        forwarded: ForwardedRequest,
        receiver: ResponseReceiver,
        on_change: Callable[[str], None],
    ) -> None:
        self._request = Request(
            forwarded.method,
            forwarded.path,
            forwarded.query,
            forwarded.headers,
            forwarded.body,
            _Peer(forwarded.client),
        )
        self._receiver = receiver
        self._on_change = on_change
        self._task: asyncio.Task[None] | None = None
        self._stream: Stream | None = None

    def start(self, app: Handler) -> bool:
        """Returns whether it can be cancelled."""
        try:
            later = app(self._request, self._respond)
        except Exception as error:
            self._respond(_failure(error))
            return False
        if later is None:
            return False
        self._task = asyncio.ensure_future(self._await(later))
        return True

    def cancel(self) -> None:
        if self._stream is not None:
            self._stream.lose()
        elif self._task is not None:
            self._task.cancel()

    async def _await(self, later: Awaitable[Response]) -> None:
        try:
            response = await later
        except Exception as error:
            response = _failure(error)
        self._respond(response)

    def _respond(self, response: Response) -> None:
        queue = self._request.params.get("queue")
        if queue is not None and self._request.method not in _SAFE and response.status < 400:
            self._on_change(queue)  # first: the front must not serve its next request from a cache
        is_stream = isinstance(response, Stream)
        self._receiver.respond(
            ForwardedResponse(
                response.status, response.body, response.content_type, response.headers, is_stream
            )
        )
        if isinstance(response, Stream):
            self._stream = response
            response.begin(self._receiver.send, self._receiver.end)


class _Peer(asyncio.BaseTransport):
    """Knows the address of the client, who is connected to a front."""

    def __init__(self, client: str) -> None:
        super().__init__({"peername": (client,)} if client else None)


def _failure(error: Exception) -> Response:
    return error_response(error) if isinstance(error, PenstockError) else unexpected(error)
