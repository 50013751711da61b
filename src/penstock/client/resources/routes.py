"""Routes: where deliveries go."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.api import routes
from penstock.api.routes import Match, MatchedUri, Route, Rules
from penstock.client.channel import Channel


class RouteClient:
    def __init__(self, channel: Channel) -> None:
        self._request = channel.request

    def list(self) -> Sequence[Route]:
        """List the routes in order."""
        return self._request(routes.LIST).routes

    def put(self, rules: msgspec.Raw) -> Sequence[Route]:
        """Replace all routes, or none if one of them is invalid."""
        return self._request(routes.PUT, Rules(rules)).routes

    def match(self, uri: str) -> Match:
        """Raises RouteNotFound."""
        return self._request(routes.MATCH, query=MatchedUri(uri=uri))
