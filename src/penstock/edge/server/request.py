"""Requests and responses: as handlers see them, their JSON, and their bytes in HTTP/1.1."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TypeVar
from urllib.parse import parse_qsl

import httptools
import msgspec

from penstock.domain.access.api_key import ANYONE, Caller
from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import NUL

T = TypeVar("T")

JSON = b"application/json"
_encode = msgspec.json.Encoder().encode

# Statuses whose responses have no content headers.
_BARE = {s: f"HTTP/1.1 {s} {HTTPStatus(s).phrase}\r\ndate: ".encode() for s in (204, 304)}
_STATUS_LINES = {
    s.value: f"HTTP/1.1 {s.value} {s.phrase}\r\ncontent-type: ".encode() for s in HTTPStatus
}

_END = b"\r\n\r\n"
_LONGEST = 1_024  # bytes; bounds the memory of the cache
_MAX_REMEMBERED = 1_000
# Requests with the first two need more than the body: an interim response, and a check whether
# encoded bodies are accepted.  The values of the others never repeat.
_SPECIAL = frozenset({b"expect", b"content-encoding", b"traceparent", b"x-amz-date"})


class Request(msgspec.Struct, eq=False):
    method: str
    path: str
    query_bytes: bytes
    headers: dict[bytes, bytes]
    body: bytes
    _transport: asyncio.BaseTransport | None = None
    params: dict[str, str] = {}  # parameters of the path
    caller: Caller = ANYONE

    @property
    def client(self) -> str:
        """The address of the peer, which may be a proxy; empty if unknown."""
        if self._transport is None:
            return ""
        peer = self._transport.get_extra_info("peername")
        return str(peer[0]) if peer else ""

    def query(self, *allowed: str) -> dict[str, str]:
        """The query parameters; raises InvalidRequest for unknown names."""
        try:
            pairs = parse_qsl(
                self.query_bytes.decode("ascii"),
                keep_blank_values=True,
                max_num_fields=50,
                errors="strict",
            )
        except ValueError:
            raise InvalidRequest("the query is malformed") from None
        values = dict(pairs)
        if len(values) != len(pairs):
            raise InvalidRequest("a query parameter is given twice")
        if any(NUL in value for value in values.values()):
            raise InvalidRequest("a query parameter must not contain a NUL")
        unknown = values.keys() - set(allowed)
        if unknown:
            raise InvalidRequest(f"unknown query parameter {min(unknown)[:40]!r}")
        return values


class Response(msgspec.Struct, eq=False):
    status: int
    body: bytes = b""
    content_type: bytes = JSON
    headers: tuple[tuple[bytes, bytes], ...] = ()


Respond = Callable[[Response], None]
# A handler returns an awaitable response, or calls `respond` itself later.  The hot
# operations do the latter, because a task per request costs as much as the request.
Handler = Callable[[Request, Respond], Awaitable[Response] | None]


def decode(decoder: msgspec.json.Decoder[T], body: bytes | msgspec.Raw) -> T:
    """Decode a JSON body; raises InvalidRequest with the position of the mistake."""
    try:
        return decoder.decode(body or b"{}")
    except msgspec.DecodeError as error:
        raise InvalidRequest(str(error)) from None
    except (RecursionError, UnicodeDecodeError):
        raise InvalidRequest("the JSON is nested too deeply or not valid UTF-8") from None


def json_response(value: object, status: int = 200) -> Response:
    return Response(status, _encode(value))


def raw_json(json_text: str) -> msgspec.Raw:
    """Return JSON as it is stored; decoding it could change a value."""
    return msgspec.Raw(json_text.encode())


def split_target(url: bytes) -> tuple[str, bytes]:
    """Split a request target into path and query; raises ValueError."""
    path, _, query = url.partition(b"?")
    if path[:1] != b"/":
        try:  # the absolute form that proxies use: http://host/path
            path = httptools.parse_url(url).path or b"/"
        except httptools.HttpParserInvalidURLError:
            raise ValueError from None
    return path.decode("ascii"), query.partition(b"#")[0] if query else query


def encode(response: Response, date: bytes, keep_alive: bool, without_body: bool) -> bytes:
    """Encode a response for HTTP/1.1."""
    if response.status in _BARE:
        head = [_BARE[response.status], date]
    else:
        head = [
            _STATUS_LINES[response.status],
            response.content_type,
            b"\r\ncontent-length: %d\r\ndate: " % len(response.body),
            date,
        ]
    for name, value in response.headers:
        head += (b"\r\n", name, b": ", value)
    head.append(b"\r\n\r\n" if keep_alive else b"\r\nconnection: close\r\n\r\n")
    if not without_body:
        head.append(response.body)
    return b"".join(head)


class RequestHeadCache:
    """A cache of parsed request heads.

    Clients repeat the same head on a connection, even the length of the body.  Identical bytes mean
    an identical request head, so they are parsed once: measured, this saves a quarter of the time
    until a request reaches the store.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[int, Request]] = {}

    def recognise(self, data: bytes, transport: asyncio.BaseTransport) -> Request | None:
        """The request, if `data` is complete and its head known, which implies keep-alive."""
        size = data.find(_END) + len(_END)
        known = self._known.get(data[:size])
        if known is None or known[0] != len(data):
            return None
        like = known[1]
        body = data[size:]
        return Request(like.method, like.path, like.query_bytes, like.headers, body, transport)

    def learn(self, data: bytes, request: Request) -> None:
        """Cache the head of a request that arrived in one piece, unless more data follows it.

        The request must be HTTP/1.1, on a connection that stays open.
        """
        size = data.find(_END) + len(_END)
        if size > _LONGEST or size + len(request.body) != len(data):
            return
        headers = request.headers
        if _SPECIAL.isdisjoint(headers):
            if len(self._known) >= _MAX_REMEMBERED:
                self._known.clear()
            like = Request(request.method, request.path, request.query_bytes, headers, b"")
            self._known[data[:size]] = (len(data), like)
