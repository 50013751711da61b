"""Circuits over HTTP: how they are, closing them, holding them open, and the breaker's settings.

A circuit concerns the queues of everybody.  A key that is for some queues only sees the circuits
that hold one of them, and changes none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from penstock.domain.access.api_key import Role, Scope, is_limited, sees
from penstock.domain.circuit.overrides import check_route
from penstock.domain.circuit.settings import BreakerSettings, changed
from penstock.domain.errors import CircuitNotFound
from penstock.edge.chunks import unhold_all
from penstock.edge.instants import to_text
from penstock.edge.native import wire_in
from penstock.edge.native import wire_push as wire
from penstock.edge.server.request import Request, Respond, Response, json_response
from penstock.edge.server.router import Route
from penstock.services.circuits.circuits import Circuits, CircuitView
from penstock.services.circuits.insight import MAX_HELD, CircuitInsight

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
                scope=Scope.FILTERED,
                summary="The circuits, and how they are; with a route only its circuit.",
                gives=wire.CircuitsOut,
                query=("route",),
            ),
            read(
                path=one,
                handler=self.get,
                name="getCircuit",
                scope=Scope.NAMED,
                summary="One circuit.",
                gives=wire.CircuitOut,
                refuses=(CircuitNotFound,),
            ),
            read(
                path=f"{one}/samples",
                handler=self.samples,
                name="getCircuitSamples",
                scope=Scope.NAMED,
                summary="How the requests of a circuit went lately, minute by minute.",
                gives=wire.MinutesOut,
                refuses=(CircuitNotFound,),
            ),
            operate(
                path=f"{every}/close",
                handler=self.close_all,
                name="closeCircuits",
                scope=Scope.ALL,
                summary="Close all circuits that are open or half-open.",
                gives=wire.ClosedOut,
            ),
            operate(
                path=f"{one}/close",
                handler=self.close,
                name="closeCircuit",
                scope=Scope.ALL,
                summary="Close a circuit and forget its samples; its queues are let go in turn.",
                gives=wire.CircuitOut,
                refuses=(CircuitNotFound,),
            ),
            operate(
                path=f"{every}/unhold",
                handler=self.unhold_all,
                name="unholdQueues",
                scope=Scope.ALL,
                summary="Unhold all queues that circuits hold, now.",
                gives=wire.UnheldOut,
            ),
            operate(
                path=f"{one}/unhold",
                handler=self.unhold,
                name="unholdCircuit",
                scope=Scope.ALL,
                summary="Unhold all queues that a circuit holds, now; its state stays.",
                gives=wire.UnheldOut,
                refuses=(CircuitNotFound,),
            ),
            operate(
                path=f"{one}/open",
                handler=self.force_open,
                name="openCircuit",
                scope=Scope.ALL,
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
                scope=Scope.ALL,
                summary="The settings of the circuit breaker.",
            ),
            operate(
                method="PATCH",
                handler=self.change_settings,
                name="changeBreaker",
                scope=Scope.ALL,
                summary="Change some settings of the circuit breaker and leave the others.",
                takes=BreakerSettings,
                example={"error_threshold_percentage": 80, "single_probe": True},
            ),
            operate(
                method="DELETE",
                handler=self.reset_settings,
                name="resetBreaker",
                scope=Scope.ALL,
                summary="Bring all settings of the circuit breaker back to their defaults.",
            ),
        ]

    async def list(self, request: Request, respond: Respond) -> Response:
        route = request.query("route").get("route")
        found = await self._circuits.overview()
        views = list(found.circuits.values())
        if route is not None:
            views = [self._circuits.view_of(check_route(route), found)]
        held, awaiting = sum(found.held.values()), found.awaiting_unhold
        if is_limited(request.caller):
            own = await self._insight.held_among(partial(sees, request.caller))
            views = limited_views(views, own)
            held, awaiting = sum(map(len, own.values())), 0
        listed = sorted(map(wire.circuit_out, views), key=lambda circuit: circuit.pattern)
        return json_response(wire.CircuitsOut(listed, held, awaiting))

    async def get(self, request: Request, respond: Respond) -> Response:
        found, held = await self._visible(request)
        if held is None:
            held = await self._insight.held_queues(found.hash)
        out = wire.circuit_out(found)
        out.held_queues = [*held[:MAX_HELD]]
        return json_response(out)

    async def samples(self, request: Request, respond: Respond) -> Response:
        await self._visible(request)
        minutes = await self._insight.minutes(request.params["circuit"])
        told = [
            wire.MinuteOut(to_text(m.at), m.successes, m.failures, m.fail_ratio) for m in minutes
        ]
        return json_response(wire.MinutesOut(told))

    async def close_all(self, request: Request, respond: Respond) -> Response:
        return json_response(wire.ClosedOut(await self._circuits.close_all()))

    async def close(self, request: Request, respond: Respond) -> Response:
        await self._told(request.params["circuit"])  # one that nobody knows is not closed
        await self._circuits.close(request.params["circuit"])
        return await self._told(request.params["circuit"])

    async def unhold_all(self, request: Request, respond: Respond) -> Response:
        return json_response(wire.UnheldOut(await unhold_all(self._circuits.held_queues)))

    async def unhold(self, request: Request, respond: Respond) -> Response:
        circuit = request.params["circuit"]
        unheld = await unhold_all(self._circuits.held_queues, circuit)
        if not unheld:  # a circuit that was removed may still have had queues
            await self._told(circuit)
        return json_response(wire.UnheldOut(unheld))

    async def force_open(self, request: Request, respond: Respond) -> Response:
        await self._circuits.force_open(request.params["circuit"])
        return await self._told(request.params["circuit"])

    async def settings(self, request: Request, respond: Respond) -> Response:
        return json_response(await self._circuits.breaker.get())

    async def change_settings(self, request: Request, respond: Respond) -> Response:
        changes = wire_in.decode(_some_settings, request.body)
        return json_response(await self._circuits.breaker.change(partial(changed, changes)))

    async def reset_settings(self, request: Request, respond: Respond) -> Response:
        return json_response(await self._circuits.breaker.reset())

    async def _visible(self, request: Request) -> tuple[CircuitView, Sequence[str] | None]:
        """The circuit; with it, for a limited key, the queues of the key that it holds.

        Raises CircuitNotFound, also where a limited key has none.
        """
        circuit = request.params["circuit"]
        found = await self._circuits.one(circuit)
        if found is None:
            raise CircuitNotFound(circuit)
        if not is_limited(request.caller):
            return found, None
        own = await self._insight.held_among(partial(sees, request.caller))
        views = limited_views([found], own)
        if not views:
            raise CircuitNotFound(circuit)
        return views[0], own[found.hash]

    async def _told(self, circuit: str) -> Response:
        found = await self._circuits.one(circuit)
        if found is None:
            raise CircuitNotFound(circuit)
        return json_response(wire.circuit_out(found))


def limited_views(
    views: Iterable[CircuitView], own: Mapping[str, Sequence[str]]
) -> list[CircuitView]:
    """What a limited key sees of circuits: those that hold a queue of its own, and how many."""
    return [
        replace(view, held=len(own[view.hash]), awaiting_unhold=0)
        for view in views
        if view.hash in own
    ]
