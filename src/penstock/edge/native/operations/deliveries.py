"""Deliveries as JSON: an HTTP request that is stored now and pushed later."""

from __future__ import annotations

import msgspec

from penstock.domain.access.api_key import Role, Scope
from penstock.domain.errors import InvalidUri, NotForDeliveries, QueueFull, RouteNotFound
from penstock.edge.gateleen.intake import Intake
from penstock.edge.native import wire_in
from penstock.edge.native import wire_push as wire
from penstock.edge.server.request import Request, Respond, Response, json_response
from penstock.edge.server.router import Route
from penstock.ports.clock import Clock

_delivery = msgspec.json.Decoder(wire.DeliveryIn)
_EXAMPLE = {
    "queue": "orders",
    "uri": "/shop/orders/17",
    "method": "PUT",
    "headers": {"x-queue-expire-after": "3600"},
    "body": {"status": "paid"},
}


class DeliveryApi:
    def __init__(self, intake: Intake, clock: Clock) -> None:
        self._intake = intake
        self._clock = clock

    def routes(self) -> list[Route]:
        return [
            Route(
                method="POST",
                path="/v1/deliveries",
                handler=self.send,
                role=Role.PRODUCE,
                name="sendDelivery",
                scope=Scope.NAMED,
                summary="Store an HTTP request; it is pushed later, in the order of its queue.",
                takes=wire.DeliveryIn,
                example=_EXAMPLE,
                gives=wire.AcceptedOut,
                status=202,
                refuses=(InvalidUri, RouteNotFound, QueueFull, NotForDeliveries),
            )
        ]

    async def send(self, request: Request, respond: Respond) -> Response:
        given = wire_in.decode(_delivery, request.body)
        sent, route = await self._intake.take(
            given.queue,
            given.delivery(now=self._clock.now()),
            caller=request.caller,
            dedup_key=given.dedup_key,
            expires_in_ms=given.expires_in_ms,
        )
        return json_response(wire.accepted_out(sent, given.queue, route), 202)
