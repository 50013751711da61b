"""Serve `/v1/openapi.json` for programs and `/docs` for people.  Neither requires a key."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from penstock.api.overview import OPENAPI
from penstock.edge.native.bind import route_of
from penstock.edge.native.docs.curl import BASE
from penstock.edge.native.docs.page import policy, render
from penstock.edge.native.openapi.document import document
from penstock.edge.server.request import Request, Respond, Response
from penstock.edge.server.router import HttpRoute

_HOST = re.compile(rb"[A-Za-z0-9.:\[\]_-]{1,255}")


class DocsApi:
    def __init__(
        self,
        routes: Sequence[HttpRoute],
        *,
        is_key_needed: Callable[[], bool],
        scheme: str,
        home: str = "/docs",
    ) -> None:
        self._is_key_needed = is_key_needed
        self._home = home.encode()
        self._scheme = scheme
        operations = [route.operation for route in (*routes, *self.routes()) if route.operation]
        described = document(operations)
        self._json = msgspec.json.encode(described)
        self._pages = {needed: render(described, with_key=needed) for needed in (False, True)}
        self._headers = (
            (b"content-security-policy", policy().encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"no-referrer"),
        )

    def routes(self) -> list[HttpRoute]:
        return [
            route_of(OPENAPI, self.openapi),
            HttpRoute(method="GET", path="/docs", handler=self.page),
            HttpRoute(method="GET", path="/", handler=self.home),
        ]

    async def openapi(self, request: Request, respond: Respond) -> Response:
        return Response(200, self._json)

    async def page(self, request: Request, respond: Respond) -> Response:
        host = request.headers.get(b"host", b"")
        name = host.decode() if _HOST.fullmatch(host) else "localhost"
        page = self._pages[self._is_key_needed()].replace(BASE, f"{self._scheme}://{name}")
        return Response(
            200,
            page.encode(),
            content_type=b"text/html; charset=utf-8",
            headers=self._headers,
        )

    async def home(self, request: Request, respond: Respond) -> Response:
        return Response(302, headers=((b"location", self._home),))
