"""The circuits of jobs over HTTP: a worker asks before it runs them, and tells what became of them.

A circuit is named by the route that jobs have, whoever may claim them: any key with the role
`consume` may ask and tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from penstock.domain.access import Role
from penstock.domain.draft import is_label
from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import Limits
from penstock.edge.http import wire_in
from penstock.edge.http import wire_push as wire
from penstock.edge.http.request import Request, Respond, Response, json_response
from penstock.edge.http.router import Route
from penstock.services.circuits import Circuits, Wanted

_routes = msgspec.json.Decoder(wire.RouteNamesIn)
_outcomes = msgspec.json.Decoder(wire.JobOutcomesIn)


class JobCircuitApi:
    def __init__(self, circuits: Circuits, limits: Limits) -> None:
        self._circuits = circuits
        self._limits = limits

    def routes(self) -> list[Route]:
        consume = partial(Route, method="POST", role=Role.CONSUME)
        return [
            consume(
                path="/v1/circuits/permits",
                handler=self.permits,
                name="askCircuits",
                summary="Whether jobs of some routes may be run now; a probe is for one job.",
                takes=wire.RouteNamesIn,
                example={"routes": ["stripe"]},
                gives=wire.RoutePermitsOut,
            ),
            consume(
                path="/v1/circuits/outcomes",
                handler=self.outcomes,
                name="tellCircuits",
                summary="What became of jobs that were let through.",
                takes=wire.JobOutcomesIn,
                example={"outcomes": [{"route": "stripe", "id": "job-17", "outcome": "success"}]},
                status=204,
            ),
        ]

    async def permits(self, request: Request, respond: Respond) -> Response:
        asked = wire_in.decode(_routes, request.body).routes
        self._check(asked)
        circuits = self._circuits
        if not circuits.is_watching:
            return json_response(wire.RoutePermitsOut(False, []))
        names = dict.fromkeys(asked)
        told = await circuits.permits([Wanted(name, is_of_table=False) for name in names])
        if not circuits.is_final(told):
            told = await circuits.secure(told)
        return json_response(wire.RoutePermitsOut(True, [wire.permit_out(one) for one in told]))

    async def outcomes(self, request: Request, respond: Respond) -> Response:
        told = wire_in.decode(_outcomes, request.body).outcomes
        self._check([one.route for one in told])
        await self._circuits.report([one.reported for one in told])
        return Response(204)

    def _check(self, routes: Sequence[str]) -> None:
        most = self._limits.max_batch
        if not 1 <= len(routes) <= most:
            raise InvalidRequest(f"1 to {most} at a time, not {len(routes)}")
        if not all(is_label(route, self._limits) for route in routes):
            raise InvalidRequest(
                f"a route has 1 to {self._limits.max_label_chars} characters, none of them NUL"
            )
