"""Routes over HTTP: where deliveries go, and which of the routes one would take."""

from __future__ import annotations

import asyncio

import msgspec

from penstock.domain.access.api_key import Role, Scope
from penstock.domain.errors import InvalidRequest, InvalidUri, RouteNotFound
from penstock.edge.native import wire_in
from penstock.edge.native import wire_push as wire
from penstock.edge.server.request import Request, Respond, Response, json_response
from penstock.edge.server.router import Route
from penstock.services.routes import Routes

_rules = msgspec.json.Decoder(wire.RulesIn)
_EXAMPLE = {"rules": {"/shop/(.*)": {"url": "http://localhost:8080/$1", "timeout": 30}}}


class RouteApi:
    def __init__(self, routes: Routes) -> None:
        self._routes = routes

    def routes(self) -> list[Route]:
        every = "/v1/routes"
        return [
            Route(
                method="GET",
                path=every,
                handler=self.list,
                role=Role.READ,
                name="listRoutes",
                scope=Scope.ALL,
                summary="The routes in their order: the first that fits a delivery takes it.",
                gives=wire.RoutesOut,
            ),
            Route(
                method="PUT",
                path=every,
                handler=self.put,
                role=Role.OPERATE,
                name="putRoutes",
                scope=Scope.ALL,
                summary="Replace all routes, or none if there is a mistake in one.",
                takes=wire.RulesIn,
                example=_EXAMPLE,
                gives=wire.RoutesOut,
            ),
            Route(
                method="GET",
                path=f"{every}/match",
                handler=self.match,
                role=Role.READ,
                name="matchRoute",
                scope=Scope.ALL,
                summary="The route that a delivery would take, and the URL it would go to.",
                gives=wire.MatchOut,
                query=("uri",),
                refuses=(RouteNotFound, InvalidUri),
            ),
        ]

    async def list(self, request: Request, respond: Respond) -> Response:
        return self._told()

    async def put(self, request: Request, respond: Respond) -> Response:
        text = wire.rules_text(wire_in.decode(_rules, request.body))
        await self._routes.keep(await asyncio.to_thread(self._routes.parse, text))
        return self._told()

    async def match(self, request: Request, respond: Respond) -> Response:
        uri = request.query("uri").get("uri")
        if uri is None:
            raise InvalidRequest("the query names the uri of a delivery")
        route = self._routes.match(uri)
        return json_response(wire.MatchOut(wire.route_out(route), route.target(uri)))

    def _told(self) -> Response:
        found = self._routes.table.routes
        return json_response(wire.RoutesOut([wire.route_out(route) for route in found]))
