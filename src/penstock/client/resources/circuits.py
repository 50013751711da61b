"""Routes of deliveries, circuits and their settings, and the circuits of jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from penstock.api import circuits, deliveries, job_circuits
from penstock.api.circuits import Circuit, CircuitRoute, CircuitSettings
from penstock.api.deliveries import Match, MatchedUri, Route, Rules
from penstock.api.job_circuits import JobOutcome, JobOutcomes, RouteNames
from penstock.api.operation import Operation
from penstock.client.resources.resource import ResourceClient
from penstock.domain.circuit.circuit import OutcomeReport, PermitAnswer, circuit_hash
from penstock.domain.circuit.settings import BreakerSettings
from penstock.domain.errors import InvalidRequest


class CircuitClient(ResourceClient):
    def list(self) -> Sequence[Circuit]:
        """List circuits by pattern."""
        return self._request(circuits.LIST).circuits

    def get(self, circuit: str) -> Circuit:
        """Raises CircuitNotFound."""
        return self._request(circuits.GET, circuit=circuit)

    def close(self, circuit: str) -> Circuit:
        return self._request(circuits.CLOSE, circuit=circuit)

    def close_all(self) -> int:
        """Close all circuits; returns how many were not closed."""
        return self._request(circuits.CLOSE_ALL).closed

    def unhold(self, circuit: str) -> int:
        """Release the queues of a circuit; returns how many were held."""
        return self._request(circuits.UNHOLD, circuit=circuit).unheld

    def unhold_all(self) -> int:
        """Release every queue; returns how many were held."""
        return self._request(circuits.UNHOLD_ALL).unheld

    def open(self, circuit: str) -> Circuit:
        """Open it; it stays open until an operator closes it."""
        return self._request(circuits.OPEN, circuit=circuit)

    # ---- jobs

    def permits(self, jobs: Mapping[str, str]) -> dict[str, PermitAnswer] | None:
        """Return whether jobs of these routes may run now; None if no circuit is watched.

        `jobs` maps each route to the id of a claimed job that names it.
        """
        wanted = RouteNames([*jobs], [*jobs.values()])
        answer = self._request(job_circuits.PERMITS, wanted)
        return (
            {one.route: one.permit_answer for one in answer.permits} if answer.is_watching else None
        )

    def report(self, reports: Sequence[OutcomeReport]) -> None:
        """Report the outcomes of jobs that had a permit."""
        outcomes = [JobOutcome.of(one) for one in reports]
        self._request(job_circuits.OUTCOMES, JobOutcomes(outcomes))

    # ---- settings

    def settings(self) -> BreakerSettings:
        return self._request(circuits.GET_BREAKER)

    def change_settings(self, changes: Mapping[str, Any]) -> BreakerSettings:
        return self._request(circuits.CHANGE_BREAKER, changes)

    def reset_settings(self) -> BreakerSettings:
        return self._request(circuits.RESET_BREAKER)

    def all_own_settings(self) -> Sequence[CircuitSettings]:
        """The settings of all circuits that override those of the breaker, by route."""
        return self._request(circuits.LIST_SETTINGS).circuits

    def own_settings(
        self, circuit: str | None = None, *, route: str | None = None
    ) -> CircuitSettings:
        """The overrides of the circuit with this hash or route.  Raises CircuitNotFound."""
        return self._own_settings(circuits.GET_SETTINGS, circuit, route)

    def change_own_settings(
        self,
        changes: Mapping[str, Any],
        circuit: str | None = None,
        *,
        route: str | None = None,
    ) -> CircuitSettings:
        """Override these settings, and keep the other overrides."""
        return self._own_settings(circuits.CHANGE_SETTINGS, circuit, route, changes)

    def put_own_settings(
        self,
        overrides: Mapping[str, Any],
        circuit: str | None = None,
        *,
        route: str | None = None,
    ) -> CircuitSettings:
        """Replace all overrides with these."""
        return self._own_settings(circuits.PUT_SETTINGS, circuit, route, overrides)

    def reset_own_settings(
        self, circuit: str | None = None, *, route: str | None = None
    ) -> CircuitSettings:
        """Remove all overrides."""
        return self._own_settings(circuits.RESET_SETTINGS, circuit, route)

    def _own_settings(
        self,
        operation: Operation[CircuitSettings],
        circuit: str | None,
        route: str | None,
        body: Mapping[str, Any] | None = None,
    ) -> CircuitSettings:
        if circuit is None and route is not None:
            circuit = circuit_hash(route)
        elif circuit is None or route is not None:
            raise InvalidRequest("name a circuit or a route, and not both")
        return self._request(operation, body, CircuitRoute(route=route), circuit=circuit)


class RouteClient(ResourceClient):
    def list(self) -> Sequence[Route]:
        """List the routes in order."""
        return self._request(deliveries.LIST_ROUTES).routes

    def put(self, rules: msgspec.Raw) -> Sequence[Route]:
        """Replace all routes, or none if one of them is invalid."""
        return self._request(deliveries.PUT_ROUTES, Rules(rules)).routes

    def match(self, uri: str) -> Match:
        """Raises RouteNotFound."""
        return self._request(deliveries.MATCH_ROUTE, query=MatchedUri(uri=uri))
