"""Sends deliveries; each needs a matching route and a queue for deliveries."""

from __future__ import annotations

from penstock.domain.delivery.delivery import (
    GROUP,
    KIND,
    Delivery,
    is_for_deliveries,
    queue_settings,
    to_body,
)
from penstock.domain.delivery.route import DeliveryRoute
from penstock.domain.errors import InvalidRequest, NotForDeliveries, QueueNotFound
from penstock.domain.limits import Limits
from penstock.domain.message.draft import Draft
from penstock.ports.store import Sent
from penstock.ports.unit_of_work import Steps
from penstock.services.messages import MessageService
from penstock.services.queues import QueueService
from penstock.services.routes import RouteService


class DeliveryService:
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
        if not is_for_deliveries(queue):
            raise NotForDeliveries(queue.name)
        return (yield from self._messages.send_one(name, draft))


def _size(delivery: Delivery) -> int:
    """The size as sent, not as stored."""
    headers = sum(len(name) + len(text) for name, text in delivery.headers)
    return len(delivery.payload or b"") + headers + len(delivery.uri)
