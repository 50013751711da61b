"""Deliveries, and the routes they take."""

from __future__ import annotations

import base64
import binascii
import re
from functools import partial

from msgspec import UNSET

from penstock.api import deliveries
from penstock.api.deliveries import Accepted, Match, MatchedUri, Route, Rules
from penstock.domain.access.api_key import Role, allow
from penstock.domain.delivery.delivery import METHODS, Delivery, check_headers, short_id
from penstock.domain.errors import InvalidRequest
from penstock.domain.queue.queue import check_name
from penstock.operations.call import Call, Handlers
from penstock.operations.drafts import text_of
from penstock.ports.clock import Clock
from penstock.ports.unit_of_work import Steps, ThreadedStep
from penstock.services.routes import DeliveryService, RouteService

MAX_HEADERS = 100
_URI = re.compile(r"/[\x21-\x7e]{0,8191}")
_JSON = ("content-type", "application/json")


class DeliveryOperations:
    def __init__(self, service: DeliveryService, clock: Clock) -> None:
        self._deliveries = service
        self._clock = clock

    def handlers(self) -> Handlers:
        return {deliveries.SEND: self.send}

    def send(self, call: Call[deliveries.Delivery, None]) -> Steps[Accepted]:
        wanted = call.body
        delivery = _delivery(wanted, now=self._clock.now())
        allow(call.caller, Role.PRODUCE, check_name(wanted.queue))
        sent, route = yield from self._deliveries.send(
            wanted.queue,
            delivery,
            dedup_key=wanted.dedup_key,
            expires_in_ms=wanted.expires_in_ms,
        )
        return Accepted(
            id=sent.id, queue=wanted.queue, route=route.pattern, is_duplicate=sent.is_duplicate
        )


def _delivery(wanted: deliveries.Delivery, *, now: int) -> Delivery:
    """Build the delivery; raises InvalidRequest."""
    if wanted.method not in METHODS:
        raise InvalidRequest(
            f"method {wanted.method[:20]!r} cannot be queued; use one of {', '.join(METHODS)}"
        )
    if not _URI.fullmatch(wanted.uri):
        raise InvalidRequest(
            f"uri must be a path that begins with /, and may have a query, not {wanted.uri[:80]!r}"
        )
    payload, headers = _payload(wanted), check_headers(wanted.headers, most=MAX_HEADERS)
    if wanted.body is not UNSET and not any(name.lower() == _JSON[0] for name, _ in headers):
        headers = (*headers, _JSON)
    return Delivery(
        method=wanted.method,
        uri=wanted.uri,
        headers=headers,
        payload=payload,
        queued_at=now,
        unique_id=short_id(wanted.request_id) if wanted.request_id else None,
    )


def _payload(wanted: deliveries.Delivery) -> bytes | None:
    if wanted.body is not UNSET:
        if wanted.payload is not None:
            raise InvalidRequest("give body or payload, not both")
        return text_of(wanted.body).encode()
    try:
        return base64.b64decode(wanted.payload, validate=True) if wanted.payload else None
    except (binascii.Error, ValueError):
        raise InvalidRequest("payload must be base64; give a JSON value as body") from None


class RouteOperations:
    def __init__(self, service: RouteService) -> None:
        self._routes = service

    def handlers(self) -> Handlers:
        return {
            deliveries.LIST_ROUTES: self.list,
            deliveries.PUT_ROUTES: self.put,
            deliveries.MATCH_ROUTE: self.match,
        }

    def list(self, call: Call[None, None]) -> deliveries.Routes:
        return deliveries.Routes.of(self._routes.table)

    def put(self, call: Call[Rules, None]) -> Steps[deliveries.Routes]:
        parsed = yield from ThreadedStep(partial(self._routes.parse, text_of(call.body.rules)))
        yield from self._routes.replace(parsed)
        return deliveries.Routes.of(self._routes.table)

    def match(self, call: Call[None, MatchedUri]) -> Match:
        route = self._routes.match(call.query.uri)
        return Match(route=Route.of(route), target=route.target(call.query.uri))
