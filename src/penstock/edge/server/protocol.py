"""HTTP/1.1 on one connection: turns bytes into requests, and responses into bytes.

llhttp parses (through httptools), strictly.  Measured on one core with 64 connections: 102,000
trivial requests per second; granian serves 33,000 (ASGI) to 50,000 (RSGI).  A connection serves one
request at a time; pipelined requests wait.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable
from typing import cast

import httptools

from penstock.domain.errors import (
    InvalidRequest,
    PenstockError,
    ShuttingDown,
    TooLarge,
    TooManyConnections,
    TooManyWaiting,
    UnsupportedMediaType,
)
from penstock.edge.server import bounds
from penstock.edge.server.errors import error_response, unexpected
from penstock.edge.server.request import Request, Response, encode, split_target
from penstock.edge.server.stream import Stream, stream_head
from penstock.edge.server.traffic import Traffic

_NEVER = float("inf")


class HttpConnection(asyncio.Protocol):
    __slots__ = (
        "_body",
        "_buffered",
        "_has_headers",
        "_header_bytes",
        "_headers",
        "_is_clogged",
        "_is_receiving",
        "_is_serving",
        "_keep_alive",
        "_line_bytes",
        "_parser",
        "_piece",
        "_refused",
        "_request",
        "_stream",
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
        self._request: Request | None = None  # the request being served
        self._task: asyncio.Task[None] | None = None
        self._stream: Stream | None = None  # a streamed response
        self._keep_alive = True
        self._buffered = 0
        self._is_receiving = False  # part of a request has arrived
        self._is_clogged = False  # the client does not read its responses
        self._is_serving = False
        self._line_bytes = 0  # length of the incomplete line; -1 within a body
        self._piece = b""  # the data being parsed, until its first request is complete
        self.deadline = traffic.now() + traffic.receive_timeout
        self._reset()

    def _reset(self) -> None:
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._has_headers = False
        self._header_bytes = 0
        self._body: bytes | bytearray = b""
        self._refused: PenstockError | None = None

    # --- the connection ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        traffic = self._traffic
        if traffic.is_draining:
            self._reject(ShuttingDown("this node is shutting down and accepts no more connections"))
        elif self not in traffic.connections and not traffic.make_room():
            self._reject(
                TooManyConnections(f"{traffic.max_connections} connections are in use; try again")
            )
        else:
            traffic.connections.add(self)

    def await_handshake(self, transport: asyncio.Transport) -> None:
        """Count a TLS connection during its handshake; closing `transport` ends the handshake."""
        self._transport = transport
        self._traffic.connections.add(self)

    def _reject(self, error: PenstockError) -> None:
        self._write(error_response(error), keep_alive=False)

    def data_received(self, data: bytes) -> None:
        if not self._is_receiving:
            if self._request is None and not self._waiting and not self._is_clogged:
                request = self._traffic.heads.recognise(data, self._transport)
                if request is not None:
                    self._serve(request, keep_alive=True)
                    return
            self._piece = data
        try:
            self._parser.feed_data(data)
            if self._is_receiving:
                self._measure_line(data)
        except httptools.HttpParserUpgrade:
            self._transport.pause_reading()  # the request is answered, what follows is not
        except (httptools.HttpParserError, PenstockError) as error:
            self._refuse_rest(self._refused or InvalidRequest(f"malformed HTTP: {error}"))
        self._piece = b""

    def connection_lost(self, exc: Exception | None) -> None:
        self._traffic.leave(self)
        self._release_body()
        self._waiting.clear()
        self._reset()
        del self._parser  # breaks a reference cycle, so that memory is freed at once
        if self._task is not None:
            self._task.cancel()  # the client cannot read the response
        if self._stream is not None:
            self._stream.lose()

    def pause_writing(self) -> None:
        # A client that does not read its responses has the same timeout as one that does not send,
        # and gets no more responses until it reads.
        self._is_clogged = True
        self._transport.pause_reading()
        self.deadline = self._traffic.now() + self._traffic.receive_timeout
        self._traffic.note_unsent(self, self._transport.get_write_buffer_size)

    def resume_writing(self) -> None:
        self._is_clogged = False
        self._traffic.forget_unsent(self)
        if self._stream is not None:
            self.deadline = _NEVER
        elif not self._transport.is_closing():
            self._start_idle_timer()
            self._serve_waiting()

    def abort(self) -> None:
        self._transport.abort()

    def drain(self) -> None:
        """Close now if idle, otherwise after the response; ends a stream."""
        if self._stream is not None and self._is_clogged:
            self._transport.abort()
        elif self._stream is not None or not self._is_busy:
            self._transport.close()

    @property
    def is_idle(self) -> bool:
        """Whether it is open, with no request being received or served."""
        return not (self._is_busy or self._is_receiving or self._is_clogged)

    @property
    def _is_busy(self) -> bool:
        return self._request is not None or bool(self._waiting)

    # --- callbacks of the parser ---

    def on_message_begin(self) -> None:
        self._reset()
        self._line_bytes = 0
        self._is_receiving = True
        if self._request is None and not self._waiting:
            self.deadline = self._traffic.now() + self._traffic.receive_timeout

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._header_bytes += len(url)
        if self._header_bytes > bounds.MAX_HEADER_BYTES:
            self._refuse_headers()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_bytes += len(name) + len(value)
        headers = self._headers
        if self._header_bytes > bounds.MAX_HEADER_BYTES or len(headers) >= bounds.MAX_HEADERS:
            self._refuse_headers()
        if self._has_headers:  # a trailer of a chunked body
            return
        name = name.lower()
        if name in headers:
            if name in bounds.ONCE:
                self._stop(InvalidRequest(f"the header {name.decode()} is given twice"))
            # RFC 9110, 5.3; without a space, as AWS's clients sign it
            value = headers[name] + (b"; " if name == b"cookie" else b",") + value
        headers[name] = value

    def on_headers_complete(self) -> None:
        headers = self._headers
        self._has_headers = True
        if b"host" not in headers and self._parser.get_http_version() != "1.0":
            self._stop(InvalidRequest("the header host is missing"))
        if headers.get(b"transfer-encoding", b"chunked").lower() != b"chunked":
            self._stop(InvalidRequest("the only supported transfer encoding is chunked"))
        if int(headers.get(b"content-length", b"0")) > self._traffic.max_body_bytes:
            self._stop(TooLarge(f"a request may have at most {self._traffic.max_body_bytes} bytes"))
        if b"content-encoding" in headers and not self._may_be_coded():
            self._stop(UnsupportedMediaType("compressed requests are not supported"))
        if headers.get(b"expect", b"").lower() == b"100-continue" and not self._is_busy:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _may_be_coded(self) -> bool:
        coding = self._headers[b"content-encoding"]
        return coding == b"identity" or self._traffic.accepts_encoded(self._url)

    def on_body(self, part: bytes) -> None:
        self._line_bytes = -1
        if len(self._body) + len(part) > self._traffic.max_body_bytes:
            self._stop(TooLarge(f"a request may have at most {self._traffic.max_body_bytes} bytes"))
        if not self._body:
            self._body = part
            return
        self._count_buffered(len(part))
        if isinstance(self._body, bytearray):
            self._body += part
        else:  # a list of tiny parts would take many times their size
            self._body = bytearray(self._body + part)

    def on_chunk_complete(self) -> None:
        self._line_bytes = 0

    def _count_buffered(self, size: int) -> None:
        """Limit the total size of bodies that arrive in parts, to protect memory."""
        self._buffered += size
        self._traffic.buffered_bytes += size
        if self._traffic.buffered_bytes > self._traffic.max_buffered_bytes:
            self._stop(TooManyWaiting("too many large requests at once; try again"))

    def _release_body(self) -> None:
        self._traffic.buffered_bytes -= self._buffered
        self._buffered = 0

    def on_message_complete(self) -> None:
        piece, self._piece = self._piece, b""
        method = self._parser.get_method().decode()
        keep_alive = self._parser.should_keep_alive()
        if not keep_alive or method == "CONNECT" or not bounds.CONNECTION.isdisjoint(self._headers):
            keep_alive = self._may_keep_alive(keep_alive)
        body = self._body if isinstance(self._body, bytes) else bytes(self._body)
        try:
            path, query = split_target(self._url)
        except ValueError:
            self._take(InvalidRequest("the path is malformed"), keep_alive)
            return
        request = Request(method, path, query, self._headers, body, self._transport)
        if keep_alive and piece:
            self._traffic.heads.learn(piece, request)
        self._take(request, keep_alive)

    def _may_keep_alive(self, wants_to: bool) -> bool:
        headers, parser = self._headers, self._parser
        if parser.should_upgrade():
            # Upgrades are not supported, and the parser stops here, even before this body.
            if b"content-length" in headers or b"transfer-encoding" in headers:
                self._stop(InvalidRequest("this server does not switch protocols"))
            return False
        version = parser.get_http_version()
        if version not in ("1.0", "1.1"):
            self._stop(InvalidRequest("only HTTP/1.0 and HTTP/1.1 are supported"))
        return wants_to and version == "1.1"

    def _measure_line(self, data: bytes) -> None:
        """Limit the length of an incomplete line, which the parser buffers until it ends."""
        if self._line_bytes < 0:
            return
        end = data.rfind(b"\n")
        self._line_bytes = self._line_bytes + len(data) if end < 0 else len(data) - end - 1
        if self._line_bytes > bounds.MAX_HEADER_BYTES:
            self._refuse_headers()

    def _refuse_headers(self) -> None:
        most = f"{bounds.MAX_HEADERS} lines and {bounds.MAX_HEADER_BYTES} bytes"
        self._stop(InvalidRequest(f"the head of a request may have at most {most}"))

    def _stop(self, error: PenstockError) -> None:
        """Stop parsing, and read no more from this connection."""
        self._refused = error
        raise error

    def _refuse_rest(self, error: PenstockError) -> None:
        self._transport.pause_reading()
        self._take(error, keep_alive=False)

    # --- requests and responses ---

    def _take(self, request: Request | PenstockError, keep_alive: bool) -> None:
        self._is_receiving = False
        if self._buffered:
            self._release_body()
        if self._request is None and not self._waiting and not self._is_clogged:
            self._serve(request, keep_alive)
            return
        if len(self._waiting) >= bounds.MAX_UNANSWERED and not isinstance(request, PenstockError):
            self._stop(InvalidRequest(f"more than {bounds.MAX_UNANSWERED} pipelined requests"))
        self._waiting.append((request, keep_alive))
        if len(self._waiting) >= bounds.MAX_PIPELINED:
            self._transport.pause_reading()

    def _serve(self, request: Request | PenstockError, keep_alive: bool) -> None:
        self.deadline = _NEVER
        self._keep_alive = keep_alive and not self._traffic.is_draining
        if isinstance(request, PenstockError):
            self._write(self._refusal(request), keep_alive=False)
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

    def _refusal(self, error: PenstockError) -> Response:
        try:
            path, query = split_target(self._url)
        except ValueError:
            return error_response(error)
        method = self._parser.get_method().decode()
        return self._traffic.refuse(Request(method, path, query, self._headers, b""), error)

    async def _await(self, later: Awaitable[Response]) -> None:
        try:
            response = await later
        except PenstockError as error:
            response = error_response(error)
        except Exception as error:
            response = unexpected(error)
        self._task = None
        if isinstance(response, Stream):
            self._begin(response)
        else:
            self._respond(response)

    def _begin(self, stream: Stream) -> None:
        """Start a stream, which occupies the connection until it closes."""
        self._stream = stream
        self._transport.write(stream_head(stream, self._traffic.date))
        stream.begin(self._send, self._transport.close)
        if self._traffic.is_draining:
            self.drain()

    def _send(self, data: bytes) -> None:
        # A slow client misses events; one that reads nothing is cut off by the sweep.
        if not self._is_clogged and not self._transport.is_closing():
            self._transport.write(data)

    def _respond(self, response: Response) -> None:
        request, self._request = self._request, None
        if request is None or self._transport.is_closing():
            return
        keep_alive = self._keep_alive and not self._traffic.is_draining
        self._write(response, keep_alive=keep_alive, without_body=request.method == "HEAD")
        if keep_alive and not self._is_clogged:
            self._start_idle_timer()
            if self._waiting:
                self._serve_waiting()

    def _start_idle_timer(self) -> None:
        traffic = self._traffic
        timeout = traffic.receive_timeout if self._is_receiving else traffic.idle_timeout
        self.deadline = traffic.now() + timeout

    def _serve_waiting(self) -> None:
        """Serve pipelined requests in a loop, because an immediate response calls this again."""
        if self._is_serving:
            return
        self._is_serving = True
        is_closing = self._transport.is_closing
        while self._waiting and not (self._request or self._is_clogged or is_closing()):
            self._serve(*self._waiting.popleft())
        self._is_serving = False
        if not (self._waiting or self._is_clogged or is_closing()):
            self._transport.resume_reading()

    def _write(self, response: Response, *, keep_alive: bool, without_body: bool = False) -> None:
        traffic = self._traffic
        self._transport.write(encode(response, traffic.date, keep_alive, without_body))
        if not keep_alive:
            self.deadline = traffic.now() + traffic.receive_timeout
            self._transport.close()
