"""Responses identical to AweQ's: its JSON field order, texts and headers.

Errors are plain text with the content type HTML, as Express sends them, so they are escaped.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from html import escape

import msgspec

from penstock.domain.errors import PenstockError, StoreDamaged, StoreUnavailable
from penstock.domain.message.lifecycle import Content, Message
from penstock.edge.server.errors import STATUS
from penstock.edge.server.request import Request, Response
from penstock.edge.server.router import Refuse

ANY_ORIGIN = "*"
JSON = b"application/json; charset=utf-8"
TEXT = b"text/html; charset=utf-8"
_CORS = (
    (b"access-control-allow-headers", b"Origin, X-Requested-With, Content-Type, Accept"),
    (b"access-control-allow-methods", b"POST, GET, OPTIONS, HEAD, DELETE"),
)
_encode = msgspec.json.Encoder().encode


class Okay(msgspec.Struct):
    status: str = "okay"


class SentAnswer(msgspec.Struct):
    status: str
    key: str


class ReceivedMessage(msgspec.Struct):
    key: str
    timestamp: int
    retry_count: int
    message: msgspec.Raw


class Received(msgspec.Struct):
    status: str
    message: str
    messages: list[ReceivedMessage]


class StatsBody(msgspec.Struct):
    queue_length: int
    checkouts_count: int
    checkout_lifetime: str
    rescue_interval: str


class StatsAnswer(msgspec.Struct):
    status: str
    stats: StatsBody


def for_pages(response: Response, *, origin: str) -> Response:
    """Add the three headers with which AweQ lets pages of other sites read the response."""
    response.headers += ((b"access-control-allow-origin", origin.encode()), *_CORS)
    if origin != ANY_ORIGIN:
        response.headers += ((b"vary", b"origin"),)
    return response


def send_response(key: str) -> Response:
    return _json(SentAnswer("okay", key))


def receive_response(messages: Sequence[tuple[Message, Content]], *, wanted: int) -> Response:
    if not messages:
        text = "No messages available in queue."
    elif len(messages) == wanted:
        text = "Requested batch-size available."
    else:
        text = "Fewer messages available than requested."
    return _json(Received("okay", text, [_entry(*found) for found in messages]))


def delete_response(*, was_leased: bool) -> Response:
    """Respond to a DELETE.  Unknown keys succeed too; a header shows whether one was deleted."""
    return _json(Okay(), (b"x-aweq-deleted", b"true" if was_leased else b"false"))


def stats(*, queued: int, leased: int, lease_ms: int, reap_interval_ms: int) -> Response:
    body = StatsBody(queued, leased, _seconds(lease_ms), _seconds(reap_interval_ms))
    return _json(StatsAnswer("okay", body))


def options(allowed: str) -> Response:
    """List the methods of a path, as Express does."""
    return _response(200, allowed.encode(), TEXT, (b"allow", allowed.encode()))


def refusal(failure: str) -> Refuse:
    """Return a renderer for an endpoint's errors; `failure`: its text for internal errors."""

    def refuse(request: Request, error: PenstockError) -> Response:
        if isinstance(error, StoreUnavailable | StoreDamaged) or type(error) is PenstockError:
            return _response(500, failure.encode(), TEXT)
        return _response(STATUS[type(error)], escape(str(error)).encode(), TEXT)

    return refuse


def etag(body: bytes) -> bytes:
    """A weak ETag as Express computes it: the length and 27 characters of the SHA-1."""
    digest = base64.b64encode(hashlib.sha1(body, usedforsecurity=False).digest())
    return b'W/"%x-%s"' % (len(body), digest[:27])


def _entry(message: Message, content: Content) -> ReceivedMessage:
    # `attempts` counts deliveries, `retry_count` redeliveries: 0 at the first delivery.
    body = msgspec.Raw(content.body.encode())
    return ReceivedMessage(message.id, message.sent_at, message.attempts - 1, body)


def _json(value: msgspec.Struct, *more: tuple[bytes, bytes]) -> Response:
    return _response(200, _encode(value), JSON, *more)


def _response(status: int, body: bytes, media: bytes, *more: tuple[bytes, bytes]) -> Response:
    return Response(status, body, content_type=media, headers=((b"etag", etag(body)), *more))


def _seconds(duration_ms: int) -> str:
    whole, rest = divmod(duration_ms, 1000)
    return f"{duration_ms / 1000}s" if rest else f"{whole}s"
