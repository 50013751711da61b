"""`ANY /push/{uri…}` with the header x-queue: store it, respond with 202, push it later."""

from __future__ import annotations

from functools import partial

from penstock.domain.access.api_key import Role, Scope, allow
from penstock.domain.delivery.delivery import METHODS, content_key
from penstock.domain.queue.queue import check_name
from penstock.edge.gateleen.answers import refuse
from penstock.edge.gateleen.request import read_request, uri_of
from penstock.edge.server.app import refuse_other_sites
from penstock.edge.server.request import Request, Respond, Response
from penstock.edge.server.router import HttpRoute
from penstock.ports.clock import Clock
from penstock.ports.unit_of_work import await_steps
from penstock.services.routes import DeliveryService


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
