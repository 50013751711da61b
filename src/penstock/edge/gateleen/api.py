"""Requests to queue: `ANY /push/{uri…}` with the header x-queue.

The server stores the request, responds with 202 and pushes it later.  Headers of the connection,
the queue's name, API keys and console logins are not stored.
"""

from __future__ import annotations

import re
from functools import partial

import msgspec

from penstock.domain.access.api_key import Role, Scope, allow
from penstock.domain.delivery.delivery import (
    METHODS,
    OF_THE_CONNECTION,
    Delivery,
    Header,
    content_key,
)
from penstock.domain.errors import (
    InvalidRequest,
    MethodNotAllowed,
    PenstockError,
    QueueFull,
    ShuttingDown,
    StoreUnavailable,
)
from penstock.domain.limits import DAY, SECOND
from penstock.domain.queue.queue import check_name
from penstock.edge.server.app import refuse_other_sites
from penstock.edge.server.errors import ErrorAnswer, ErrorBody, error_answer, error_response
from penstock.edge.server.request import Request, Respond, Response, json_response
from penstock.edge.server.router import HttpRoute
from penstock.ports.clock import Clock
from penstock.ports.unit_of_work import await_steps
from penstock.services.routes import DeliveryService

QUEUE = b"x-queue"
DUPLICATE_CHECK = b"x-duplicate-check"
QUEUED = ("x-originally-queued", "true")

MAX_CHECKED_MS = 366 * DAY
_CHECKED_MS = 60 * SECOND  # if the header has a value other than a number
_INTEGER = re.compile(r"[+-]?[0-9]{1,12}")
_OUR_KEY = re.compile(rb"(?i:bearer)\s+pk_")
_OUR_COOKIE = re.compile(rb"penstock_[0-9a-f]{8}=")  # see domain/access/login.py
_PAGE_TOKEN = b"x-csrf-token"
_OF_THE_CONNECTION = frozenset(name.encode() for name in OF_THE_CONNECTION)


class QueuedRequest(msgspec.Struct, frozen=True):
    queue: str
    delivery: Delivery
    unique_for_ms: int | None  # the same request is queued only once within this time


def read_request(request: Request, uri: str, *, now: int) -> QueuedRequest:
    """Raises InvalidRequest or MethodNotAllowed."""
    headers = request.headers
    if request.method not in METHODS:
        raise MethodNotAllowed(
            f"{request.method} requests are not queued; send them to the endpoint itself", METHODS
        )
    delivery = Delivery(
        method=request.method,
        uri=uri,
        headers=(*kept_headers(headers), QUEUED),
        payload=request.body or None,
        queued_at=now,
    )
    return QueuedRequest(queue_of(headers), delivery, unique_for_ms(headers))


def uri_of(request: Request) -> str:
    """The path after the prefix with the query string, undecoded."""
    path = f"/{request.params['uri']}"
    return f"{path}?{request.query_bytes.decode('latin-1')}" if request.query_bytes else path


def queue_of(headers: dict[bytes, bytes]) -> str:
    name = headers.get(QUEUE, b"").decode("latin-1").strip()
    if not name:
        raise InvalidRequest("name the queue in the header x-queue")
    return check_name(name)


def unique_for_ms(headers: dict[bytes, bytes]) -> int | None:
    given = headers.get(DUPLICATE_CHECK)
    if given is None:
        return None
    text = given.decode("latin-1").strip()
    if not _INTEGER.fullmatch(text):
        return _CHECKED_MS
    return min(int(text) * SECOND, MAX_CHECKED_MS) if int(text) > 0 else None


def kept_headers(headers: dict[bytes, bytes]) -> list[Header]:
    headers = _without_login(headers)
    named = {name.strip() for name in headers.get(b"connection", b"").lower().split(b",")}
    dropped = _OF_THE_CONNECTION | named | {QUEUE}
    return [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in headers.items()
        if name not in dropped and not is_our_key(name, value)
    ]


def _without_login(headers: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """Remove console logins, which are as powerful as their keys; keep other cookies."""
    parts = [part.strip() for part in headers.get(b"cookie", b"").split(b";")]
    others = [part for part in parts if not _OUR_COOKIE.match(part)]
    if len(others) == len(parts):
        return headers
    kept = {name: value for name, value in headers.items() if name != _PAGE_TOKEN}
    kept[b"cookie"] = b"; ".join(others)
    if not others:
        del kept[b"cookie"]
    return kept


def is_our_key(name: bytes, value: bytes) -> bool:
    return name == b"authorization" and _OUR_KEY.match(value) is not None


TEXT = b"text/plain; charset=utf-8"


def is_full_or_unavailable(error: PenstockError) -> bool:
    """Whether the queue is full or the store unavailable; another node may accept it."""
    if isinstance(error, ShuttingDown):
        return False
    return isinstance(error, QueueFull | StoreUnavailable)


def refuse(request: Request, error: PenstockError) -> Response:
    """Respond 500 if the queue accepts nothing; other errors as in the native API."""
    if type(error) is PenstockError:  # it has been logged
        return json_response(ErrorAnswer(ErrorBody(error.code, "internal error")), 500)
    if is_full_or_unavailable(error):
        return json_response(error_answer(error), 500)
    return error_response(error)


def text(status: int, message: str = "") -> Response:
    return Response(status, message.encode(), content_type=TEXT)


class PushApi:
    def __init__(self, deliveries: DeliveryService, clock: Clock, *, path: str) -> None:
        self._deliveries = deliveries
        self._clock = clock
        self._path = path

    def routes(self) -> list[HttpRoute]:
        route = partial(
            HttpRoute,
            path=f"{self._path}/{{uri...}}",
            handler=self.push,
            role=Role.PRODUCE,
            scope=Scope.NAMED,
            takes_any_media=True,
            refuse=refuse,
        )
        # The handler of GET also gets HEAD requests.
        return [route(method=method) for method in ("GET", *METHODS) if method != "HEAD"]

    async def push(self, request: Request, respond: Respond) -> Response:
        refuse_other_sites(request.headers)  # for requests of any method
        found = read_request(request, uri_of(request), now=self._clock.now())
        delivery = found.delivery
        is_checked = found.unique_for_ms is not None
        allow(request.caller, Role.PRODUCE, check_name(found.queue))
        sending = self._deliveries.send(
            found.queue,
            delivery,
            dedup_key=content_key(delivery.uri, delivery.payload) if is_checked else None,
            dedup_window_ms=found.unique_for_ms,
        )
        sent, _ = await await_steps(sending)
        return Response(202, headers=((b"x-message-id", sent.id.encode()),))
