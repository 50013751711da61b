"""gateleen's resources: routing rules, breaker configuration, and logging of their changes.

They concern all queues, so a key for some queues has no access.  Reading the rules requires the
same role as changing them, because they hold secrets of endpoints.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from penstock.domain.access.api_key import Role, Scope
from penstock.domain.document import Document
from penstock.domain.errors import InvalidRequest, PenstockError
from penstock.domain.limits import NUL
from penstock.edge.gateleen.api import refuse
from penstock.edge.gateleen.documents import (
    PayloadLogging,
    read_breaker,
    read_logging,
    render_breaker,
)
from penstock.edge.server.request import Request, Respond, Response, json_response
from penstock.edge.server.router import HttpRoute
from penstock.services.circuits.circuits import CircuitService
from penstock.services.documents import DocumentService
from penstock.services.routes import RouteService
from penstock.settings.push import PushSettings

LOGGING = "logging"  # the name of the document
_NOTHING = PayloadLogging()
_log = logging.getLogger("penstock.changes")


class ChangeLog:
    def __init__(self, documents: DocumentService, *, with_payloads: bool) -> None:
        self._documents = documents
        self._with_payloads = with_payloads

    async def log_change(self, request: Request) -> None:
        """Log a change; called after it was made, so it must not raise."""
        _log.info("%s %s by %s", request.method, request.path, request.caller.name)
        if not self._with_payloads or not request.body:
            return
        wanted = await self._payload_logging()
        headers = _texts(request.headers)
        if _is_wanted(wanted, request, headers):
            shown = {name: headers[name] for name in wanted.headers if name in headers}
            payload = request.body.decode("utf-8", "replace")
            _log.info("%s %s %s payload: %s", request.method, request.path, shown, payload)

    async def _payload_logging(self) -> PayloadLogging:
        try:
            found = await self._documents.get(LOGGING)
            return _NOTHING if found is None else read_logging(found.text.encode())
        except PenstockError as error:
            _log.warning("the logging resource cannot be read: %s", error)
            return _NOTHING


def _is_wanted(wanted: PayloadLogging, request: Request, headers: dict[str, str]) -> bool:
    try:
        return wanted.wants(url=request.path, method=request.method, headers=headers)
    except PenstockError as error:  # matching the pattern took too long
        _log.warning("no filter of the logging resource applies: %s", error)
        return False


def _texts(headers: dict[bytes, bytes]) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in headers.items()}


Read = Callable[[], Awaitable[Response]]
Change = Callable[[Request], Awaitable[None]]


class ResourceApi:
    def __init__(
        self,
        routes: RouteService,
        circuits: CircuitService,
        documents: DocumentService,
        settings: PushSettings,
    ) -> None:
        self._routes = routes
        self._circuits = circuits
        self._documents = documents
        self._settings = settings
        self._log = ChangeLog(documents, with_payloads=settings.log_changes)

    def routes(self) -> list[HttpRoute]:
        paths = self._settings.paths
        return [
            *self._resource(paths["rules_path"], self.get_rules, self.put_rules, self.remove_rules),
            *self._resource(
                paths["breaker_path"], self.get_breaker, self.put_breaker, self.reset_breaker
            ),
            *self._resource(
                paths["logging_path"], self.get_logging, self.put_logging, self.remove_logging
            ),
        ]

    def _resource(self, path: str, get: Read, put: Change, remove: Change) -> list[HttpRoute]:
        async def read(request: Request, respond: Respond) -> Response:
            return await get()

        def changing(do: Change) -> Callable[[Request, Respond], Awaitable[Response]]:
            async def change(request: Request, respond: Respond) -> Response:
                await do(request)
                await self._log.log_change(request)
                return Response(200)

            return change

        route = partial(
            HttpRoute,
            path=path,
            role=Role.OPERATE,
            scope=Scope.ALL,
            takes_any_media=True,
            refuse=refuse,
        )
        return [
            route(method="GET", handler=read),
            route(method="PUT", handler=changing(put)),
            route(method="DELETE", handler=changing(remove)),
        ]

    # --- routing rules ---

    async def get_rules(self) -> Response:
        return _document(await self._routes.get())

    async def put_rules(self, request: Request) -> None:
        rules = await asyncio.to_thread(self._routes.parse, text_of(request))
        await self._routes.replace(rules)

    async def remove_rules(self, request: Request) -> None:
        await self._routes.remove()

    # --- breaker configuration ---

    async def get_breaker(self) -> Response:
        return json_response(render_breaker(await self._circuits.breaker.get()))

    async def put_breaker(self, request: Request) -> None:
        await self._circuits.breaker.change(partial(read_breaker, request.body))

    async def reset_breaker(self, request: Request) -> None:
        await self._circuits.breaker.reset()

    # --- logging ---

    async def get_logging(self) -> Response:
        return _document(await self._documents.get(LOGGING))

    async def put_logging(self, request: Request) -> None:
        read_logging(request.body)
        await self._documents.put(LOGGING, text_of(request))

    async def remove_logging(self, request: Request) -> None:
        await self._documents.remove(LOGGING)


def _document(found: Document | None) -> Response:
    return Response(200, b"{}" if found is None else found.text.encode())


def text_of(request: Request) -> str:
    """Decode the text; raises InvalidRequest for characters that a store cannot keep."""
    try:
        text = request.body.decode()
    except UnicodeDecodeError:
        raise InvalidRequest("the JSON is not valid UTF-8") from None
    if NUL in text:
        raise InvalidRequest("the JSON must not contain a NUL character")
    return text
