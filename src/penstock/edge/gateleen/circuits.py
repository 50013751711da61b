"""gateleen's circuit API, with its paths, its JSON and its status codes.

    GET  <prefix>, <prefix>/_all          all circuits: {hash: {"status": …, "infos": {…}}}
    GET  <prefix>/<hash>                  one: {"status": …, "info": {…}}
    GET  <prefix>/<hash>/status           {"status": …}
    PUT  <prefix>/<hash>/status           {"status": "closed"} closes it
    PUT  <prefix>/_all/status             … closes all that are not closed

Other requests get 405.  An unknown circuit is closed.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from penstock.domain.access.api_key import Role, Scope
from penstock.domain.circuit.circuit import CircuitState
from penstock.domain.errors import PenstockError
from penstock.edge.gateleen import api
from penstock.edge.server.errors import error_answer
from penstock.edge.server.request import Request, Respond, Response, json_response
from penstock.edge.server.router import HttpRoute
from penstock.services.circuits.circuits import CircuitService, CircuitView

ALL = "_all"
STATUS = "status"
NO_STATUS = "Body must contain a correct 'status' value"
NOT_ALLOWED = "Method Not Allowed"
ONLY_CLOSED = "Status can be changed to 'CLOSED' only"
_METHODS = ("GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS")
_anything = msgspec.json.Decoder()


class CircuitApi:
    def __init__(self, circuits: CircuitService, *, path: str) -> None:
        self._circuits = circuits
        self._path = path

    def routes(self) -> list[HttpRoute]:
        return [
            self._route(method, path)
            for path in (self._path, f"{self._path}/{{rest...}}")
            for method in _METHODS
        ]

    def _route(self, method: str, path: str) -> HttpRoute:
        route = partial(
            HttpRoute,
            method=method,
            path=path,
            scope=Scope.ALL,
            takes_any_media=True,
            refuse=refuse,
        )
        if method == "GET":
            return route(handler=self.show, role=Role.READ)
        if method == "PUT":
            return route(handler=self.change, role=Role.OPERATE)
        return route(handler=self.not_allowed, role=Role.READ)

    async def not_allowed(self, request: Request, respond: Respond) -> Response:
        return api.text(405, NOT_ALLOWED)

    async def show(self, request: Request, respond: Respond) -> Response:
        match parts_of(request):
            case [] | ["_all"]:
                found = await self._circuits.all()
                return json_response({key: _of_all(view) for key, view in found.items()})
            case [circuit] if circuit != ALL:
                return json_response(_alone(await self._circuits.find(circuit)))
            case [circuit, "status"] if circuit != ALL:
                return json_response({STATUS: (await self._circuits.status(circuit)).value})
        return api.text(405, NOT_ALLOWED)

    async def change(self, request: Request, respond: Respond) -> Response:
        parts = parts_of(request)
        if len(parts) != 2 or parts[1] != STATUS:
            return api.text(405, NOT_ALLOWED)
        circuit = parts[0]
        state = wanted_state(request.body)
        if state is None:
            return api.text(400, NO_STATUS)
        if state is not CircuitState.CLOSED:
            return api.text(403, ONLY_CLOSED)
        if circuit == ALL:
            await self._circuits.close_all()
        else:
            await self._circuits.close(circuit)
        return api.text(200)


def parts_of(request: Request) -> list[str]:
    """The path after the prefix, without a trailing slash."""
    rest = request.params.get("rest", "").removesuffix("/")
    return rest.split("/") if rest else []


def wanted_state(body: bytes) -> CircuitState | None:
    try:
        given = _anything.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    status = given.get(STATUS) if isinstance(given, dict) else None
    if not isinstance(status, str):
        return None
    return next((state for state in CircuitState if state.value == status.lower()), None)


def refuse(request: Request, error: PenstockError) -> Response:
    """Respond 404 if the store does not answer, as gateleen does."""
    if api.is_full_or_unavailable(error):
        # Not the text of the error: it may contain the address of the database.
        status = 404 if request.method in ("GET", "HEAD") else 500
        return api.text(status, error_answer(error).error.message)
    return api.refuse(request, error)


def _of_all(view: CircuitView) -> dict[str, Any]:
    return {STATUS: view.circuit.state.value, "infos": _info(view)}


def _alone(view: CircuitView | None) -> dict[str, Any]:
    if view is None:
        return {STATUS: CircuitState.CLOSED.value, "info": {}}
    return {STATUS: view.circuit.state.value, "info": _info(view)}


def _info(view: CircuitView) -> dict[str, Any]:
    info: dict[str, Any] = {"failRatio": view.circuit.fail_ratio, "circuit": view.circuit.pattern}
    if view.metric_name is not None:
        info["metricName"] = view.metric_name
    return info
