"""The routes of a server elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

import msgspec

from penstock.client.remote.transport import Transport


class Route(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where deliveries go whose URI fits the pattern."""

    pattern: str
    url: str
    circuit: str
    timeout_ms: int
    methods: tuple[str, ...] = ()
    header_names: tuple[str, ...] = ()
    concurrency: int | None = None
    retry_intervals_ms: tuple[int, ...] = ()
    is_signed: bool = False
    metric_name: str | None = None
    description: str | None = None


class Match(msgspec.Struct, frozen=True):
    route: Route
    target: str


class _Routes(msgspec.Struct, frozen=True):
    routes: list[Route]


_routes = msgspec.json.Decoder(_Routes)
_match = msgspec.json.Decoder(Match)


class RemoteRoutes:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Sequence[Route]:
        """In their order."""
        return _routes.decode(self._transport.call("GET", "/v1/routes").body).routes

    def put(self, rules: msgspec.Raw) -> Sequence[Route]:
        """All of them, or none if there is a mistake in one."""
        body = {"rules": rules}
        answer = self._transport.call("PUT", "/v1/routes", body=body, is_safe=True)
        return _routes.decode(answer.body).routes

    def match(self, uri: str) -> Match:
        """Raises RouteNotFound."""
        path = f"/v1/routes/match?{urlencode({'uri': uri})}"
        return _match.decode(self._transport.call("GET", path).body)
