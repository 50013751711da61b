"""Circuits over HTTP: how they are, closing them, holding them open, and the breaker's settings.

A circuit concerns the queues of everybody, so a key that is for some queues only may look at it and
no more.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from penstock.domain.access import Role, allow_everywhere, sees
from penstock.domain.breaker_overrides import check_route
from penstock.domain.breaker_settings import BreakerSettings, changed
from penstock.domain.errors import CircuitNotFound
from penstock.edge.chunks import unhold_all
from penstock.edge.http import wire_in
from penstock.edge.http import wire_push as wire
from penstock.edge.http.request import Request, Respond, Response, json_response
from penstock.edge.http.router import Route
from penstock.edge.instants import to_text
from penstock.services.circuit_insight import CircuitInsight
from penstock.services.circuits import Circuits

_some_settings = msgspec.json.Decoder(dict[str, Any])


class CircuitApi:
    def __init__(self, circuits: Circuits, insight: CircuitInsight) -> None:
        self._circuits = circuits
        self._insight = insight

    def routes(self) -> list[Route]:
        return [*self._circuit_routes(), *self._breaker_routes()]

    def _circuit_routes(self) -> list[Route]:
        every, one = "/v1/circuits", "/v1/circuits/{circuit}"
        read = partial(Route, method="GET", role=Role.READ)
        operate = partial(Route, method="POST", role=Role.OPERATE)
        return [
            read(
                path=every,
                handler=self.list,
                name="listCircuits",
                summary="The circuits, and how they are; with a route only its circuit.",
                gives=wire.CircuitsOut,
                query=("route",),
            ),
            read(
                path=one,
                handler=self.get,
                name="getCircuit",
                summary="One circuit.",
                gives=wire.CircuitOut,
                refuses=(CircuitNotFound,),
            ),
            read(
                path=f"{one}/samples",
                handler=self.samples,
                name="getCircuitSamples",
                summary="How the requests of a circuit went lately, minute by minute.",
                gives=wire.MinutesOut,
                refuses=(CircuitNotFound,),
            ),
            operate(
                path=f"{every}/close",
                handler=self.close_all,
                name="closeCircuits",
                summary="Close all circuits that are open or half-open.",
                gives=wire.ClosedOut,
            ),
            operate(
                path=f"{one}/close",
                handler=self.close,
                name="closeCircuit",
                summary="Close a circuit and forget its samples; its queues are let go in turn.",
                gives=wire.CircuitOut,
                refuses=(CircuitNotFound,),
            ),
            operate(
                path=f"{every}/unhold",
                handler=self.unhold_all,
                name="unholdQueues",
                summary="Unhold all queues that circuits hold, now.",
                gives=wire.UnheldOut,
            ),
            operate(
                path=f"{one}/unhold",
                handler=self.unhold,
                name="unholdCircuit",
                summary="Unhold all queues that a circuit holds, now; its state stays.",
                gives=wire.UnheldOut,
                refuses=(CircuitNotFound,),
            ),
            operate(
                path=f"{one}/open",
                handler=self.force_open,
                name="openCircuit",
                summary="Open a circuit until somebody closes it.",
                gives=wire.CircuitOut,
                refuses=(CircuitNotFound,),
            ),
        ]

    def _breaker_routes(self) -> list[Route]:
        operate = partial(Route, path="/v1/breaker", role=Role.OPERATE, gives=BreakerSettings)
        return [
            operate(
                method="GET",
                role=Role.READ,
                handler=self.settings,
                name="getBreaker",
                summary="The settings of the circuit breaker.",
            ),
            operate(
                method="PATCH",
                handler=self.change_settings,
                name="changeBreaker",
                summary="Change some settings of the circuit breaker and leave the others.",
                takes=BreakerSettings,
                example={"error_threshold_percentage": 80, "single_probe": True},
            ),
            operate(
                method="DELETE",
                handler=self.reset_settings,
                name="resetBreaker",
                summary="Bring all settings of the circuit breaker back to their defaults.",
            ),
        ]

    async def list(self, request: Request, respond: Respond) -> Response:
        route = request.query("route").get("route")
        found = await self._circuits.overview()
        views = list(found.circuits.values())
        if route is not None:
            views = [self._circuits.view_of(check_route(route), found)]
        listed = sorted(map(wire.circuit_out, views), key=lambda circuit: circuit.pattern)
        held = sum(found.held.values())
        return json_response(wire.CircuitsOut(listed, held, found.awaiting_unhold))

    async def get(self, request: Request, respond: Respond) -> Response:
        found = await self._circuits.one(request.params["circuit"])
        if found is None:
            raise CircuitNotFound(request.params["circuit"])
        out = wire.circuit_out(found)
        held = await self._insight.held_queues(found.hash)
        out.held_queues = [name for name in held if sees(request.caller, name)]
        return json_response(out)

    async def samples(self, request: Request, respond: Respond) -> Response:
        await self._told(request.params["circuit"])
        minutes = await self._insight.minutes(request.params["circuit"])
        told = [
            wire.MinuteOut(to_text(m.at), m.successes, m.failures, m.fail_ratio) for m in minutes
        ]
        return json_response(wire.MinutesOut(told))

    async def close_all(self, request: Request, respond: Respond) -> Response:
        allow_everywhere(request.caller)
        return json_response(wire.ClosedOut(await self._circuits.close_all()))

    async def close(self, request: Request, respond: Respond) -> Response:
        allow_everywhere(request.caller)
        await self._told(request.params["circuit"])  # one that nobody knows is not closed
        await self._circuits.close(request.params["circuit"])
        return await self._told(request.params["circuit"])

    async def unhold_all(self, request: Request, respond: Respond) -> Response:
        allow_everywhere(request.caller)
        return json_response(wire.UnheldOut(await unhold_all(self._circuits.held_queues)))

    async def unhold(self, request: Request, respond: Respond) -> Response:
        allow_everywhere(request.caller)
        circuit = request.params["circuit"]
        unheld = await unhold_all(self._circuits.held_queues, circuit)
        if not unheld:  # a circuit that was removed may still have had queues
            await self._told(circuit)
        return json_response(wire.UnheldOut(unheld))

    async def force_open(self, request: Request, respond: Respond) -> Response:
        allow_everywhere(request.caller)
        await self._circuits.force_open(request.params["circuit"])
        return await self._told(request.params["circuit"])

    async def settings(self, request: Request, respond: Respond) -> Response:
        return json_response(await self._circuits.breaker.get())

    async def change_settings(self, request: Request, respond: Respond) -> Response:
        allow_everywhere(request.caller)
        changes = wire_in.decode(_some_settings, request.body)
        return json_response(await self._circuits.breaker.change(partial(changed, changes)))

    async def reset_settings(self, request: Request, respond: Respond) -> Response:
        allow_everywhere(request.caller)
        return json_response(await self._circuits.breaker.reset())

    async def _told(self, circuit: str) -> Response:
        found = await self._circuits.one(circuit)
        if found is None:
            raise CircuitNotFound(circuit)
        return json_response(wire.circuit_out(found))
