"""The circuits of jobs.

A circuit is named after the route of the jobs and shared by all queues.  A key for all queues may
ask about any route and report any outcome.  A key for some queues must prove that jobs of its
queues name the route: by the ids of claimed jobs when it asks, by the job itself when it reports.
It has no access to the circuits of deliveries, whose outcomes the server reports.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from penstock.api import job_circuits
from penstock.api.job_circuits import (
    JobOutcome,
    JobOutcomes,
    RouteNames,
    RoutePermit,
    RoutePermits,
)
from penstock.domain.access.api_key import Caller, is_limited, sees
from penstock.domain.circuit.circuit import circuit_hash
from penstock.domain.errors import Forbidden, InvalidRequest
from penstock.domain.limits import Limits
from penstock.domain.message.draft import is_label
from penstock.operations.call import Call, Handlers
from penstock.ports.unit_of_work import Steps
from penstock.services.circuits.circuits import CircuitService
from penstock.services.circuits.job_routes import JobRoutes
from penstock.services.routes import RouteService


class JobCircuitOperations:
    def __init__(
        self, service: CircuitService, routes: RouteService, jobs: JobRoutes, limits: Limits
    ) -> None:
        self._circuits = service
        self._routes = routes
        self._jobs = jobs
        self._limits = limits

    def handlers(self) -> Handlers:
        return {job_circuits.PERMITS: self.permits, job_circuits.OUTCOMES: self.outcomes}

    def permits(self, call: Call[RouteNames, None]) -> Steps[RoutePermits]:
        routes, ids = call.body.routes, call.body.ids
        self._check(routes)
        if len(ids) > self._limits.max_batch:
            raise InvalidRequest(f"at most {self._limits.max_batch} ids, not {len(ids)}")
        if is_limited(call.caller):
            yield from self._check_claimed(call.caller, routes, ids)
        answers = yield from self._circuits.permits_of_jobs(routes)
        if answers is None:
            return RoutePermits(is_watching=False, permits=[])
        return RoutePermits(is_watching=True, permits=[RoutePermit.of(one) for one in answers])

    def outcomes(self, call: Call[JobOutcomes, None]) -> Steps[None]:
        outcomes = call.body.outcomes
        self._check([one.route for one in outcomes])
        if is_limited(call.caller):
            yield from self._check_reported(call.caller, outcomes)
        yield from self._circuits.report([one.report for one in outcomes])

    def _check_claimed(
        self, caller: Caller, routes: Sequence[str], ids: Sequence[str]
    ) -> Steps[None]:
        self._refuse_pushed(routes)
        own = yield from self._jobs.claimed(ids, covers=partial(sees, caller))
        for route in routes:
            if circuit_hash(route) not in own:
                raise Forbidden(
                    f"this key is for some queues only: `ids` must have the id of a job with route "
                    f"{route[:80]!r} that is claimed from one of them"
                )

    def _check_reported(self, caller: Caller, outcomes: Sequence[JobOutcome]) -> Steps[None]:
        self._refuse_pushed([one.route for one in outcomes])
        ids = (one.id for one in outcomes)
        own = yield from self._jobs.circuits_of(ids, covers=partial(sees, caller))
        for one in outcomes:
            if own.get(one.id) != circuit_hash(one.route):
                raise Forbidden(
                    f"this key is for some queues only, and none of them has a job "
                    f"{one.id[:80]!r} with route {one.route[:80]!r}"
                )

    def _refuse_pushed(self, routes: Sequence[str]) -> None:
        for route in routes:
            if self._routes.of_hash(circuit_hash(route)) is not None:
                raise Forbidden(
                    f"this key is for some queues only, and {route[:80]!r} is a route of deliveries"
                )

    def _check(self, routes: Sequence[str]) -> None:
        most = self._limits.max_batch
        if not 1 <= len(routes) <= most:
            raise InvalidRequest(f"1 to {most} routes at a time, not {len(routes)}")
        if not all(is_label(route, self._limits) for route in routes):
            raise InvalidRequest(
                f"a route has 1 to {self._limits.max_label_chars} characters, none of them NUL"
            )
