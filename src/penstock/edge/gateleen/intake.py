"""Taking deliveries in: only what a route leads somewhere, into a queue that is made for them."""

from __future__ import annotations

from penstock.domain.access.api_key import Caller, Role, allow
from penstock.domain.delivery.delivery import (
    GROUP,
    KIND,
    Delivery,
    is_for_deliveries,
    queue_settings,
    to_body,
)
from penstock.domain.delivery.route import Route
from penstock.domain.errors import InvalidRequest, NotForDeliveries, PenstockError
from penstock.domain.limits import Limits
from penstock.domain.message.draft import Draft
from penstock.domain.queue.queue import Queue, check_name
from penstock.edge.protocol_queue import OwnQueue
from penstock.ports.store import Sent
from penstock.services.directory import Directory
from penstock.services.messages import Messages
from penstock.services.queues import Queues
from penstock.services.routes import Routes


class Intake:
    def __init__(
        self,
        messages: Messages,
        queues: Queues,
        directory: Directory,
        routes: Routes,
        limits: Limits,
    ) -> None:
        self._messages = messages
        self._queues = queues
        self._directory = directory
        self._routes = routes
        self._limits = limits

    async def take(
        self,
        queue: str,
        delivery: Delivery,
        *,
        caller: Caller,
        dedup_key: str | None = None,
        dedup_window_ms: int | None = None,
        expires_in_ms: int | None = None,
    ) -> tuple[Sent, Route]:
        """Answered when it is durable.  Raises, among others, RouteNotFound and Forbidden."""
        allow(caller, Role.PRODUCE, check_name(queue))
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
        own = OwnQueue(self._queues, self._directory, name=queue, settings=queue_settings())
        return await own.use(lambda found: self._send(found, draft)), route

    def _route(self, delivery: Delivery) -> Route:
        """The first that fits its URI, as when it is pushed; raises RouteNotFound."""
        found = self._routes.match(delivery.uri)
        if not found.takes(delivery.method):
            allowed = ", ".join(sorted(found.methods))
            raise InvalidRequest(f"the route of {delivery.uri[:200]!r} takes only {allowed}")
        return found

    async def _send(self, queue: Queue, draft: Draft) -> Sent:
        if not is_for_deliveries(queue):
            raise NotForDeliveries(queue.name)
        [answer] = await self._messages.send([self._messages.draft(queue, draft)])
        if isinstance(answer, PenstockError):
            raise answer
        return answer


def _size(delivery: Delivery) -> int:
    """What is counted is what was sent, and not the form in which it is kept."""
    headers = sum(len(name) + len(text) for name, text in delivery.headers)
    return len(delivery.payload or b"") + headers + len(delivery.uri)
