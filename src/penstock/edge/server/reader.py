"""Reads HTTP/1.1 requests from the bytes of one connection.

llhttp parses (through httptools), strictly.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod

import httptools

from penstock.domain.errors import (
    InvalidRequest,
    PenstockError,
    TooLarge,
    TooManyWaiting,
    UnsupportedMediaType,
)
from penstock.edge.server import bounds
from penstock.edge.server.request import Request, split_target
from penstock.edge.server.traffic import Traffic


class RequestReader(ABC):
    """A subclass takes the requests, on its transport."""

    __slots__ = (
        "_body",
        "_buffered",
        "_has_headers",
        "_header_bytes",
        "_headers",
        "_is_receiving",
        "_line_bytes",
        "_parser",
        "_piece",
        "_refused",
        "_traffic",
        "_transport",
        "_url",
        "deadline",
    )

    _transport: asyncio.Transport

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self._parser = httptools.HttpRequestParser(self)
        self._buffered = 0
        self._is_receiving = False  # part of a request has arrived
        self._line_bytes = 0  # length of the incomplete line; -1 within a body
        self._piece = b""  # the data being parsed, until its first request is complete
        self.deadline = traffic.now() + traffic.receive_timeout
        self._reset()

    @property
    @abstractmethod
    def _is_busy(self) -> bool:
        """Whether requests are being served."""

    @abstractmethod
    def _take(self, request: Request | PenstockError, keep_alive: bool) -> None:
        """Serve a request, or answer with an error to what cannot be parsed."""

    def _reset(self) -> None:
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._has_headers = False
        self._header_bytes = 0
        self._body: bytes | bytearray = b""
        self._refused: PenstockError | None = None

    # --- callbacks of the parser ---

    def on_message_begin(self) -> None:
        self._reset()
        self._line_bytes = 0
        self._is_receiving = True
        if not self._is_busy:
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
