"""Use cases of routes and deliveries.  The rules of routes are one document of the store.

It is the same for all nodes.  Each node keeps a copy; a duty checks every second whether it has
changed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import msgspec

from penstock.domain.bus.endpoint import ENDPOINTS, Endpoint, checked_route, route_of
from penstock.domain.delivery.addresses import AddressFilter
from penstock.domain.delivery.delivery import (
    GROUP,
    KIND,
    Delivery,
    queue_settings,
    takes_requests,
    to_body,
)
from penstock.domain.delivery.route import (
    DeliveryRoute,
    RouteTable,
    check_endpoint,
    check_uri,
)
from penstock.domain.delivery.route_rules import check_endpoints, parse_rules
from penstock.domain.document import Document
from penstock.domain.errors import InvalidRequest, NotForDeliveries, QueueNotFound, RouteNotFound
from penstock.domain.limits import Limits
from penstock.domain.message.draft import Draft
from penstock.ports.clock import Clock
from penstock.ports.store import Sent, Session, Store
from penstock.ports.unit_of_work import Steps, Work, read, write
from penstock.services.circuits import transitions
from penstock.services.documents import DocumentVersion
from penstock.services.messages import MessageService
from penstock.services.queues import QueueService

RULES = "routing_rules"

_log = logging.getLogger("penstock.routes")


class Rules(msgspec.Struct, frozen=True):
    """Validated rules, as text and as a table."""

    text: str
    table: RouteTable


class RouteService:
    def __init__(self, store: Store, clock: Clock, *, denied: str = "") -> None:
        """`denied`: networks that no rule may lead to, besides those that are always denied."""
        self._store = store
        self._clock = clock
        self._address_filter = AddressFilter(denied)
        self.table = RouteTable()
        self.endpoints: Mapping[int, DeliveryRoute] = {}  # by the queues of their subscriptions
        self._of_endpoints: Mapping[str, DeliveryRoute] = {}  # by the hashes of their circuits
        self._kept = DocumentVersion()
        self._kept_endpoints = DocumentVersion()

    def match(self, uri: str, *, method: str | None = None) -> DeliveryRoute:
        """Raises RouteNotFound, or InvalidUri for a URI that cannot be routed."""
        found = self.table.match(check_uri(uri), method=method)
        if found is None:
            raise RouteNotFound(uri)
        return found

    def match_in(self, queue_no: int, uri: str) -> DeliveryRoute:
        """The route of a delivery in this queue: of its endpoint, or the first that matches."""
        return self.endpoints.get(queue_no) or self.match(uri)

    def of_hash(self, circuit_hash: str) -> DeliveryRoute | None:
        return self.table.of_hash(circuit_hash) or self._of_endpoints.get(circuit_hash)

    def check_endpoint(self, endpoint: Endpoint) -> None:
        """Raise InvalidRequest if it is not valid, or deliveries must not or cannot reach it."""
        check_endpoint(checked_route(endpoint), self._address_filter)

    def load_endpoints(self) -> Work[None]:
        """Read them again, because one may be new."""
        return read(self._store, self._read_endpoints)

    def disable(self, queue_no: int, route: DeliveryRoute) -> Work[None]:
        """Pause the queue of an endpoint that wants no more deliveries; they stay there."""
        now = self._clock.now()

        def do(session: Session) -> None:
            session.queues.change(queue_no, is_paused=True, now=now)
            data = {"url": route.url, "reason": "the endpoint answered 410"}
            session.facts.add("endpoint_disabled", route.pattern, at=now, data=data)

        return write(self._store, do)

    def get(self) -> Work[Document | None]:
        return read(self._store, lambda session: session.documents.find(RULES))

    def parse(self, text: str) -> Rules:
        """Raises InvalidRequest.  Not for an event loop: thousands of rules take a second."""
        table = parse_rules(text)
        check_endpoints(table, self._address_filter)
        return Rules(text, table)

    def put(self, text: str) -> Work[Document]:
        """Replace all rules, or raise InvalidRequest; removes the circuits of removed patterns."""
        return self.replace(self.parse(text))

    def replace(self, rules: Rules) -> Work[Document]:
        """The second half of `put`: replace the rules with the parsed ones."""
        table, now = rules.table, self._clock.now()

        def do(session: Session) -> Document:
            self._drop_circuits(session, keeping=table, now=now)
            put = session.documents.put(RULES, rules.text, now=now)
            self._add_fact(session, table, put.version, now=now)
            self._take(table, put.version, now=now)
            return put

        return write(self._store, do)

    def remove(self) -> Work[bool]:
        """Remove all rules; returns whether there were any."""
        now = self._clock.now()

        def do(session: Session) -> bool:
            self._drop_circuits(session, keeping=RouteTable(), now=now)
            version = session.documents.remove(RULES, now=now)
            if version:
                self._add_fact(session, RouteTable(), version, now=now)
                self._take(RouteTable(), version, now=now)
            return bool(version)

        return write(self._store, do)

    def refresh(self, session: Session) -> None:
        """Read them from the store.  Rules that this version cannot read are ignored."""
        version = session.documents.latest(ENDPOINTS).version
        if self._kept_endpoints.is_news(version, now=self._clock.now()):
            self._read_endpoints(session)
        found = session.documents.latest(RULES)
        if not self._kept.is_news(found.version, now=self._clock.now()):
            return
        try:
            self.table = RouteTable() if found.text is None else parse_rules(found.text)
        except InvalidRequest as error:
            _log.warning("ignoring the stored rules of routes: %s", error)

    def _read_endpoints(self, session: Session) -> None:
        found: dict[int, DeliveryRoute] = {}
        for one in session.topics.with_endpoints():
            assert one.settings.endpoint is not None, "the store has selected those with one"
            try:
                found[one.queue_no] = route_of(one.settings.endpoint, one.path)
            except InvalidRequest as error:
                _log.warning("ignoring the endpoint of %s: %s", one.path, error)
        self.endpoints = found
        self._of_endpoints = {route.hash: route for route in found.values()}

    def _take(self, table: RouteTable, version: int, *, now: int) -> None:
        self.table = table
        self._kept.put(version, now=now)

    def _drop_circuits(self, session: Session, *, keeping: RouteTable, now: int) -> None:
        before = session.documents.lock(RULES, now=now)
        try:
            table = parse_rules(before.text) if before else RouteTable()
        except InvalidRequest:  # written by another version
            table = self.table
        kept = keeping.patterns
        gone = {one: pattern for one, pattern in table.patterns.items() if one not in kept}
        if gone:
            transitions.close_and_remove(session, gone, now=now)

    def _add_fact(self, session: Session, table: RouteTable, version: int, *, now: int) -> None:
        data = {"version": version, "routes": len(table.routes)}
        session.facts.add("routes_changed", RULES, at=now, data=data)


class DeliveryService:
    """Sends deliveries; each needs a matching route and a queue for deliveries."""

    def __init__(
        self,
        messages: MessageService,
        queues: QueueService,
        routes: RouteService,
        limits: Limits,
    ) -> None:
        self._messages = messages
        self._queues = queues
        self._routes = routes
        self._limits = limits

    def send(
        self,
        queue: str,
        delivery: Delivery,
        *,
        dedup_key: str | None = None,
        dedup_window_ms: int | None = None,
        expires_in_ms: int | None = None,
    ) -> Steps[tuple[Sent, DeliveryRoute]]:
        """Ends when the delivery is durable; raises RouteNotFound, NotForDeliveries, QueueFull."""
        route = self._route(delivery)
        draft = Draft(
            body=to_body(delivery),
            kind=KIND,
            group=GROUP,
            entity_id=delivery.request_id,
            route=route.pattern[: self._limits.max_label_chars],
            dedup_key=dedup_key,
            dedup_window_ms=dedup_window_ms,
            expires_in_ms=expires_in_ms,
            size=_size(delivery),
        )
        try:
            sent = yield from self._send(queue, draft)
        except QueueNotFound:  # removed since the directory saw it
            sent = yield from self._send(queue, draft)
        return sent, route

    def _route(self, delivery: Delivery) -> DeliveryRoute:
        """The first route that matches its URI, as at the push; raises RouteNotFound."""
        found = self._routes.match(delivery.uri)
        if not found.takes(delivery.method):
            allowed = ", ".join(sorted(found.methods))
            raise InvalidRequest(f"the route of {delivery.uri[:200]!r} takes only {allowed}")
        return found

    def _send(self, name: str, draft: Draft) -> Steps[Sent]:
        queue = yield from self._queues.get_or_create(name, queue_settings())
        if not takes_requests(queue):
            raise NotForDeliveries(queue.name)
        return (yield from self._messages.send_one(name, draft))


def _size(delivery: Delivery) -> int:
    """The size as sent, not as stored."""
    headers = sum(len(name) + len(text) for name, text in delivery.headers)
    return len(delivery.payload or b"") + headers + len(delivery.uri)
