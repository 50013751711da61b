"""Requests and responses, as handlers see them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl

import httptools
import msgspec

from penstock.domain.access.api_key import ANYONE, Caller
from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import NUL

JSON = b"application/json"
_encode = msgspec.json.Encoder().encode


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


def json_response(value: object, status: int = 200) -> Response:
    return Response(status, _encode(value))


def split_target(url: bytes) -> tuple[str, bytes]:
    """Split a request target into path and query; raises ValueError."""
    path, _, query = url.partition(b"?")
    if path[:1] != b"/":
        try:  # the absolute form that proxies use: http://host/path
            path = httptools.parse_url(url).path or b"/"
        except httptools.HttpParserInvalidURLError:
            raise ValueError from None
    return path.decode("ascii"), query.partition(b"#")[0] if query else query
