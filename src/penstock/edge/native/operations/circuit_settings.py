"""Settings of single circuits over HTTP.

A circuit concerns the queues of everybody, so a key that is for some queues only is refused.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from penstock.domain.access.api_key import Role, Scope
from penstock.domain.circuit import overrides
from penstock.domain.circuit.overrides import NONE, BreakerOverrides
from penstock.domain.errors import CircuitNotFound
from penstock.edge.native import wire_in
from penstock.edge.native import wire_push as wire
from penstock.edge.server.request import Request, Respond, Response, json_response
from penstock.edge.server.router import Route
from penstock.services.circuits.overrides import Change
from penstock.services.circuits.settings import CircuitSettings

_values = msgspec.json.Decoder(dict[str, Any])


class CircuitSettingsApi:
    def __init__(self, settings: CircuitSettings) -> None:
        self._settings = settings

    def routes(self) -> list[Route]:
        one = partial(
            Route,
            path="/v1/circuits/{circuit}/settings",
            role=Role.OPERATE,
            gives=wire.CircuitSettingsOut,
            query=("route",),
            refuses=(CircuitNotFound,),
        )
        return [
            Route(
                method="GET",
                path="/v1/circuits/settings",
                role=Role.READ,
                handler=self.list,
                name="listCircuitSettings",
                scope=Scope.ALL,
                summary="The circuits that override settings of the breaker.",
                gives=wire.CircuitSettingsListOut,
            ),
            one(
                method="GET",
                role=Role.READ,
                handler=self.get,
                name="getCircuitSettings",
                scope=Scope.ALL,
                summary="The settings of one circuit: what it overrides, and what is in force.",
            ),
            one(
                method="PUT",
                handler=self.put,
                name="putCircuitSettings",
                scope=Scope.ALL,
                summary="Override just these settings of the breaker for one circuit.",
                takes=BreakerOverrides,
                example={"error_threshold_percentage": 50, "min_queue_sample_count": 20},
            ),
            one(
                method="PATCH",
                handler=self.change,
                name="changeCircuitSettings",
                scope=Scope.ALL,
                summary="Override some settings of the breaker and leave the other overrides.",
                takes=BreakerOverrides,
                example={"entries_max_age_ms": 300_000},
            ),
            one(
                method="DELETE",
                handler=self.reset,
                name="resetCircuitSettings",
                scope=Scope.ALL,
                summary="Bring one circuit back to the breaker's defaults.",
            ),
        ]

    async def list(self, request: Request, respond: Respond) -> Response:
        found = await self._settings.all()
        return json_response(
            wire.CircuitSettingsListOut([wire.circuit_settings_out(view) for view in found])
        )

    async def get(self, request: Request, respond: Respond) -> Response:
        route = request.query("route").get("route")
        found = await self._settings.get(request.params["circuit"], route=route)
        return json_response(wire.circuit_settings_out(found))

    async def put(self, request: Request, respond: Respond) -> Response:
        values: dict[str, Any] = wire_in.decode(_values, request.body)
        wanted = overrides.read(values)
        return await self._changed(request, lambda _: wanted)

    async def change(self, request: Request, respond: Respond) -> Response:
        changes: dict[str, Any] = wire_in.decode(_values, request.body)
        return await self._changed(request, partial(overrides.changed, changes))

    async def reset(self, request: Request, respond: Respond) -> Response:
        return await self._changed(request, lambda _: NONE)

    async def _changed(self, request: Request, change: Change) -> Response:
        route = request.query("route").get("route")
        found = await self._settings.change(request.params["circuit"], change, route=route)
        return json_response(wire.circuit_settings_out(found))
