"""Fleets over HTTP: how they are and why, and how many workers are wanted, for KEDA to ask.

A key that is for some queues only sees the fleets of those.  Queues of other brokers are in no key,
so their fleets are for those who may see everything.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from penstock.domain.access.api_key import Caller, Role, Scope, sees
from penstock.domain.errors import FleetNotFound, FleetNotWatched
from penstock.domain.fact import FactFilter
from penstock.domain.scaling.fleet_sources import OWN
from penstock.domain.scaling.fleet_status import DECISION, FleetStatus
from penstock.edge.native import wire_scaling as wire
from penstock.edge.server.request import Request, Respond, Response, json_response
from penstock.edge.server.router import Route
from penstock.operations.cursor import from_cursor, read_limit, to_cursor
from penstock.ports.clock import Clock
from penstock.services.facts import Facts
from penstock.services.scaling import Scaling

_PAGE = ("limit", "cursor")


class ScalingApi:
    def __init__(self, scaling: Scaling, facts: Facts, clock: Clock) -> None:
        self._scaling = scaling
        self._facts = facts
        self._clock = clock

    def routes(self) -> list[Route]:
        every, one = "/v1/scaling", "/v1/scaling/{fleet}"
        read = partial(Route, method="GET", role=Role.READ)
        return [
            read(
                path=every,
                handler=self.list,
                name="listFleets",
                scope=Scope.FILTERED,
                summary="The fleets, what was seen of them last, what was decided and why.",
                gives=wire.FleetsOut,
            ),
            read(
                path=one,
                handler=self.get,
                name="getFleet",
                scope=Scope.NAMED,
                summary="One fleet.",
                gives=wire.FleetOut,
                refuses=(FleetNotFound,),
            ),
            read(
                path=f"{one}/decisions",
                handler=self.decisions,
                name="listDecisions",
                scope=Scope.NAMED,
                summary="What was decided about a fleet, newest first.",
                gives=wire.DecisionsOut,
                refuses=(FleetNotFound,),
                query=_PAGE,
            ),
            read(
                path=f"{one}/wanted",
                handler=self.wanted,
                name="getWanted",
                scope=Scope.NAMED,
                summary="How many workers a fleet should have, as KEDA's metrics-api scaler asks.",
                gives=wire.WantedOut,
                refuses=(FleetNotFound, FleetNotWatched),
            ),
        ]

    async def list(self, request: Request, respond: Respond) -> Response:
        now = self._clock.now()
        found = [one for one in await self._scaling.all() if _sees(request.caller, one)]
        return json_response(wire.FleetsOut([wire.fleet_out(one, now=now) for one in found]))

    async def get(self, request: Request, respond: Respond) -> Response:
        status = await self._seen(request)
        return json_response(wire.fleet_out(status, now=self._clock.now()))

    async def decisions(self, request: Request, respond: Respond) -> Response:
        query = request.query(*_PAGE)
        status = await self._seen(request)
        before: Any = from_cursor(query.get("cursor"), 2)
        wanted = FactFilter(
            kind=DECISION,
            subject=status.name,
            before=before,
            limit=read_limit(query.get("limit")),
        )
        found = await self._facts.search(wanted)
        following = None
        if len(found) == wanted.limit:
            following = to_cursor(found[-1].at, found[-1].fact_no)
        return json_response(wire.DecisionsOut([*map(wire.decided_out, found)], following))

    async def wanted(self, request: Request, respond: Respond) -> Response:
        status = await self._seen(request)
        return json_response(wire.WantedOut(await self._scaling.wanted(status.name)))

    async def _seen(self, request: Request) -> FleetStatus:
        """Raises FleetNotFound, also for one that is not for this caller to see."""
        status = await self._scaling.one(request.params["fleet"])
        if not _sees(request.caller, status):
            raise FleetNotFound(status.name)
        return status


def _sees(caller: Caller, status: FleetStatus) -> bool:
    return "*" in caller.queues or (
        status.source == OWN and all(sees(caller, queue) for queue in status.all_queues)
    )
