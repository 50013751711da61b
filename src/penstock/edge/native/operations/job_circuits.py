"""The circuits of jobs over HTTP: a worker asks before it runs them, and reports how they ended.

A circuit is named by the route of the jobs, and shared by all queues.  A key for all queues may ask
for any route and report any outcome.  A key for some queues proves its business with a route by
jobs of its queues: by jobs it has claimed when it asks, by the job itself when it reports.  The
circuits of pushed deliveries are never its business: the server reports those itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from penstock.domain.access.api_key import Caller, Role, Scope, is_limited, sees
from penstock.domain.circuit.circuit import circuit_hash
from penstock.domain.errors import Forbidden, InvalidRequest
from penstock.domain.limits import Limits
from penstock.domain.message.draft import is_label
from penstock.edge.native import wire_in
from penstock.edge.native import wire_push as wire
from penstock.edge.server.request import Request, Respond, Response, json_response
from penstock.edge.server.router import Route
from penstock.services.circuits.circuits import Circuits, Wanted
from penstock.services.circuits.job_routes import JobRoutes
from penstock.services.routes import Routes

_routes = msgspec.json.Decoder(wire.RouteNamesIn)
_outcomes = msgspec.json.Decoder(wire.JobOutcomesIn)


class JobCircuitApi:
    def __init__(self, circuits: Circuits, table: Routes, jobs: JobRoutes, limits: Limits) -> None:
        self._circuits = circuits
        self._table = table
        self._jobs = jobs
        self._limits = limits

    def routes(self) -> list[Route]:
        consume = partial(Route, method="POST", role=Role.CONSUME)
        return [
            consume(
                path="/v1/circuits/permits",
                handler=self.permits,
                name="askCircuits",
                scope=Scope.NAMED,
                summary="Whether jobs of some routes may be run now; a probe is for one job.",
                takes=wire.RouteNamesIn,
                example={"routes": ["stripe"]},
                gives=wire.RoutePermitsOut,
            ),
            consume(
                path="/v1/circuits/outcomes",
                handler=self.outcomes,
                name="tellCircuits",
                scope=Scope.NAMED,
                summary="What became of jobs that were let through.",
                takes=wire.JobOutcomesIn,
                example={"outcomes": [{"route": "stripe", "id": "job-17", "outcome": "success"}]},
                status=204,
            ),
        ]

    async def permits(self, request: Request, respond: Respond) -> Response:
        wanted = wire_in.decode(_routes, request.body)
        asked = wanted.routes
        self._check(asked)
        if len(wanted.ids) > self._limits.max_batch:
            raise InvalidRequest(f"at most {self._limits.max_batch} ids, not {len(wanted.ids)}")
        if is_limited(request.caller):
            await self._check_claimed(request.caller, asked, wanted.ids)
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
        if is_limited(request.caller):
            await self._check_reported(request.caller, told)
        await self._circuits.report([one.reported for one in told])
        return Response(204)

    async def _check_claimed(
        self, caller: Caller, routes: Sequence[str], ids: Sequence[str]
    ) -> None:
        self._refuse_pushed(routes)
        own = await self._jobs.claimed(ids, covers=partial(sees, caller))
        for route in routes:
            if circuit_hash(route) not in own:
                raise Forbidden(
                    f"this key is for some queues only: `ids` must have the id of a job with route "
                    f"{route[:80]!r} that is claimed from one of them"
                )

    async def _check_reported(self, caller: Caller, told: Sequence[wire.JobOutcomeIn]) -> None:
        self._refuse_pushed([one.route for one in told])
        own = await self._jobs.circuits_of((one.id for one in told), covers=partial(sees, caller))
        for one in told:
            if own.get(one.id) != circuit_hash(one.route):
                raise Forbidden(
                    f"this key is for some queues only, and none of them has a job "
                    f"{one.id[:80]!r} with route {one.route[:80]!r}"
                )

    def _refuse_pushed(self, routes: Sequence[str]) -> None:
        for route in routes:
            if self._table.table.of_hash(circuit_hash(route)) is not None:
                raise Forbidden(
                    f"this key is for some queues only, and {route[:80]!r} is a route of deliveries"
                )

    def _check(self, routes: Sequence[str]) -> None:
        most = self._limits.max_batch
        if not 1 <= len(routes) <= most:
            raise InvalidRequest(f"1 to {most} at a time, not {len(routes)}")
        if not all(is_label(route, self._limits) for route in routes):
            raise InvalidRequest(
                f"a route has 1 to {self._limits.max_label_chars} characters, none of them NUL"
            )
