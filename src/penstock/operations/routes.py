"""Routes."""

from __future__ import annotations

from functools import partial

from penstock.api import routes
from penstock.api.routes import Match, MatchedUri, Route, Rules
from penstock.operations.call import Call, Handlers
from penstock.operations.drafts import text_of
from penstock.ports.unit_of_work import Computation, Steps
from penstock.services.routes import RouteService


class RouteOperations:
    def __init__(self, service: RouteService) -> None:
        self._routes = service

    def handlers(self) -> Handlers:
        return {routes.LIST: self.list, routes.PUT: self.put, routes.MATCH: self.match}

    def list(self, call: Call[None, None]) -> routes.Routes:
        return routes.Routes.of(self._routes.table)

    def put(self, call: Call[Rules, None]) -> Steps[routes.Routes]:
        parsed = yield from Computation(partial(self._routes.parse, text_of(call.body.rules)))
        yield from self._routes.keep(parsed)
        return routes.Routes.of(self._routes.table)

    def match(self, call: Call[None, MatchedUri]) -> Match:
        route = self._routes.match(call.query.uri)
        return Match(route=Route.of(route), target=route.target(call.query.uri))
