"""HTTP/1.1 on a connection: bytes to requests and responses to bytes, nothing of queues.

Parsing is llhttp's (httptools), strict by default.  Measured on one core with 64 connections: this
way 102,000 trivial requests a second, granian 33,000 (ASGI) to 50,000 (RSGI).  One request at a
time per connection; what is pipelined behind it waits its turn.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import cast

import httptools

from penstock.domain.errors import (
    InvalidRequest,
    PenstockError,
    ShuttingDown,
    TooLarge,
    UnsupportedMediaType,
)
from penstock.edge.http.errors import error_response, unexpected
from penstock.edge.http.request import Handler, Request, Response

MAX_HEADER_BYTES = 32 * 1024
MAX_HEADERS = 100
MAX_PIPELINED = 32

_STATUS_LINES = {
    s.value: f"HTTP/1.1 {s.value} {s.phrase}\r\ncontent-type: ".encode() for s in HTTPStatus
}


class Traffic:
    """What all connections of a server share."""

    def __init__(
        self,
        handle: Handler,
        *,
        max_body_bytes: int,
        receive_timeout: float,
        idle_timeout: float,
        max_connections: int,
    ) -> None:
        self.handle = handle
        self.max_body_bytes = max_body_bytes
        self.receive_timeout = receive_timeout
        self.idle_timeout = idle_timeout
        self.max_connections = max_connections
        self.connections: set[HttpConnection] = set()
        self.is_draining = False
        self.left = asyncio.Event()  # set when the last connection goes
        self.date = b""
        self.now = asyncio.get_running_loop().time

    def sweep(self) -> None:
        """Cut off those who dawdle; called about once a second."""
        now = self.now()
        for connection in list(self.connections):
            if connection.deadline < now:
                connection.abort()


class HttpConnection(asyncio.Protocol):
    __slots__ = (
        "_body",
        "_body_bytes",
        "_header_bytes",
        "_headers",
        "_keep_alive",
        "_method",
        "_parser",
        "_refused",
        "_request",
        "_responding",
        "_task",
        "_traffic",
        "_transport",
        "_url",
        "_waiting",
        "deadline",
    )

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self._parser = httptools.HttpRequestParser(self)
        self._waiting: deque[tuple[Request | PenstockError, bool]] = deque()
        self._request: Request | None = None  # the one that is being served
        self._task: asyncio.Task[None] | None = None
        self._keep_alive = True
        self.deadline = traffic.now() + traffic.receive_timeout
        self._reset()

    def _reset(self) -> None:
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._header_bytes = 0
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._refused: PenstockError | None = None

    # --- the connection ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if len(self._traffic.connections) >= self._traffic.max_connections:
            self._write(error_response(ShuttingDown("too many connections")), keep_alive=False)
            return
        self._traffic.connections.add(self)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse_rest(InvalidRequest("this server does not switch protocols"))
        except httptools.HttpParserError as error:
            self._refuse_rest(self._refused or InvalidRequest(f"malformed HTTP: {error}"))

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._traffic.connections.discard(self)
        if not self._traffic.connections:
            self._traffic.left.set()
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()  # nobody is there to hear the answer

    def pause_writing(self) -> None:
        # A client that does not read its answers gets the same patience as one that does not send.
        self.deadline = self._traffic.now() + self._traffic.receive_timeout

    def resume_writing(self) -> None:
        self.deadline = self._traffic.now() + self._traffic.idle_timeout

    def abort(self) -> None:
        self._transport.abort()

    def drain(self) -> None:
        """Close now if idle, else after the answer."""
        if self._request is None and not self._waiting:
            self._transport.close()

    @property
    def is_busy(self) -> bool:
        return self._request is not None or bool(self._waiting)

    # --- the parser's calls ---

    def on_message_begin(self) -> None:
        self._reset()
        self.deadline = self._traffic.now() + self._traffic.receive_timeout

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._measure(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._measure(len(name) + len(value))
        if len(self._headers) >= MAX_HEADERS:
            self._stop(InvalidRequest(f"more than {MAX_HEADERS} headers"))
        self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        headers = self._headers
        if int(headers.get(b"content-length", b"0")) > self._traffic.max_body_bytes:
            self._stop(TooLarge(f"a request takes at most {self._traffic.max_body_bytes} bytes"))
        if headers.get(b"content-encoding", b"identity") != b"identity":
            self._stop(UnsupportedMediaType("compressed requests are not taken"))
        if headers.get(b"expect", b"").lower() == b"100-continue":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, part: bytes) -> None:
        self._body_bytes += len(part)
        if self._body_bytes > self._traffic.max_body_bytes:
            self._stop(TooLarge(f"a request takes at most {self._traffic.max_body_bytes} bytes"))
        self._body.append(part)

    def on_message_complete(self) -> None:
        keep_alive = self._parser.should_keep_alive()
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        method = self._parser.get_method().decode()
        try:
            path, query = _split(self._url)
        except ValueError:
            self._take(InvalidRequest("the path is malformed"), keep_alive)
            return
        request = Request(method, path, query, self._headers, body, self._transport)
        self._take(request, keep_alive)

    def _measure(self, size: int) -> None:
        self._header_bytes += size
        if self._header_bytes > MAX_HEADER_BYTES:
            self._stop(InvalidRequest(f"headers take at most {MAX_HEADER_BYTES} bytes"))

    def _stop(self, error: PenstockError) -> None:
        """Leave the parser: what follows on this connection is not read any more."""
        self._refused = error
        raise error

    def _refuse_rest(self, error: PenstockError) -> None:
        self._transport.pause_reading()
        self._take(error, keep_alive=False)

    # --- requests and responses ---

    def _take(self, request: Request | PenstockError, keep_alive: bool) -> None:
        self.deadline = float("inf")
        if self._request is None and not self._waiting:
            self._serve(request, keep_alive)
            return
        self._waiting.append((request, keep_alive))
        if len(self._waiting) >= MAX_PIPELINED:
            self._transport.pause_reading()

    def _serve(self, request: Request | PenstockError, keep_alive: bool) -> None:
        self._keep_alive = keep_alive and not self._traffic.is_draining
        if isinstance(request, PenstockError):
            self._write(error_response(request), keep_alive=False)
            return
        self._request = request
        try:
            later = self._traffic.handle(request, self._respond)
        except PenstockError as error:
            self._respond(error_response(error))
        except Exception as error:
            self._respond(unexpected(error))
        else:
            if later is not None:
                self._task = asyncio.ensure_future(self._await(later))

    async def _await(self, later: Awaitable[Response]) -> None:
        try:
            response = await later
        except PenstockError as error:
            response = error_response(error)
        except Exception as error:
            response = unexpected(error)
        self._task = None
        self._respond(response)

    def _respond(self, response: Response) -> None:
        request, self._request = self._request, None
        if request is None or self._transport.is_closing():
            return
        keep_alive = self._keep_alive and not self._traffic.is_draining
        self._write(response, keep_alive=keep_alive, without_body=request.method == "HEAD")
        if keep_alive:
            self.deadline = self._traffic.now() + self._traffic.idle_timeout
            if self._waiting:
                self._serve(*self._waiting.popleft())
                self._transport.resume_reading()

    def _write(self, response: Response, *, keep_alive: bool, without_body: bool = False) -> None:
        head = [
            _STATUS_LINES[response.status],
            response.content_type,
            b"\r\ncontent-length: %d\r\ndate: " % len(response.body),
            self._traffic.date,
        ]
        for name, value in response.headers:
            head += (b"\r\n", name, b": ", value)
        head.append(b"\r\n\r\n" if keep_alive else b"\r\nconnection: close\r\n\r\n")
        if not without_body:
            head.append(response.body)
        self._transport.write(b"".join(head))
        if not keep_alive:
            self._transport.close()


def _split(url: bytes) -> tuple[str, bytes]:
    path, _, query = url.partition(b"?")
    if not path.startswith(b"/"):
        # The absolute form that proxies use: http://host/path
        path = httptools.parse_url(url).path or b"/"
    return path.decode("ascii"), query.partition(b"#")[0]


MakeConnection = Callable[[], HttpConnection]
