"""Routes: where deliveries go."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.api import deliveries
from penstock.api.deliveries import Match, MatchedUri, Route, Rules
from penstock.client.channel import Channel


class RouteClient:
    def __init__(self, channel: Channel) -> None:
        self._request = channel.request

    def list(self) -> Sequence[Route]:
        """List the routes in order."""
        return self._request(deliveries.LIST_ROUTES).routes

    def put(self, rules: msgspec.Raw) -> Sequence[Route]:
        """Replace all routes, or none if one of them is invalid."""
        return self._request(deliveries.PUT_ROUTES, Rules(rules)).routes

    def match(self, uri: str) -> Match:
        """Raises RouteNotFound."""
        return self._request(deliveries.MATCH_ROUTE, query=MatchedUri(uri=uri))
