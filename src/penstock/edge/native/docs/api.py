"""Serve `/v1/openapi.json` for programs and `/docs` for people.  Neither requires a key.

Both are made when they are first requested, in a thread: that takes half as long as the rest of a
server's start, and most servers are never asked.
"""

from __future__ import annotations

import asyncio
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


class DocsPages(msgspec.Struct):
    openapi: bytes
    with_key: str
    without_key: str


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
        self._operations = [r.operation for r in (*routes, *self.routes()) if r.operation]
        self._made: asyncio.Task[DocsPages] | None = None
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
        return Response(200, (await self._pages()).openapi)

    async def page(self, request: Request, respond: Respond) -> Response:
        host = request.headers.get(b"host", b"")
        name = host.decode() if _HOST.fullmatch(host) else "localhost"
        pages = await self._pages()
        page = pages.with_key if self._is_key_needed() else pages.without_key
        page = page.replace(BASE, f"{self._scheme}://{name}")
        return Response(
            200,
            page.encode(),
            content_type=b"text/html; charset=utf-8",
            headers=self._headers,
        )

    async def home(self, request: Request, respond: Respond) -> Response:
        return Response(302, headers=((b"location", self._home),))

    async def _pages(self) -> DocsPages:
        if self._made is None:
            self._made = asyncio.create_task(asyncio.to_thread(self._make))
        # Shielded: a client that disconnects must not cancel it for the others.
        return await asyncio.shield(self._made)

    def _make(self) -> DocsPages:
        described = document(self._operations)
        has_console = self._home == b"/console"
        return DocsPages(
            openapi=msgspec.json.encode(described),
            with_key=render(described, with_key=True, has_console=has_console),
            without_key=render(described, with_key=False, has_console=has_console),
        )
