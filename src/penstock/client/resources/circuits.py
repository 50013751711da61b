"""Circuits, their settings, and the circuits of jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.api import circuit_settings, circuits, job_circuits
from penstock.api.circuit_settings import CircuitRoute, CircuitSettings
from penstock.api.circuits import Circuit
from penstock.api.job_circuits import JobOutcome, JobOutcomes, RouteNames
from penstock.api.operation import Operation
from penstock.client.channel import Channel
from penstock.domain.circuit.circuit import Permitted, Reported, circuit_hash
from penstock.domain.circuit.settings import BreakerSettings
from penstock.domain.errors import InvalidRequest


class CircuitClient:
    def __init__(self, channel: Channel) -> None:
        self._request = channel.request

    def list(self) -> Sequence[Circuit]:
        """By their patterns."""
        return self._request(circuits.LIST).circuits

    def get(self, circuit: str) -> Circuit:
        """Raises CircuitNotFound."""
        return self._request(circuits.GET, circuit=circuit)

    def close(self, circuit: str) -> Circuit:
        return self._request(circuits.CLOSE, circuit=circuit)

    def close_all(self) -> int:
        """Returns how many were not closed before."""
        return self._request(circuits.CLOSE_ALL).closed

    def unhold(self, circuit: str) -> int:
        """Release the queues of a circuit; returns how many were held."""
        return self._request(circuits.UNHOLD, circuit=circuit).unheld

    def unhold_all(self) -> int:
        """Release every queue; returns how many were held."""
        return self._request(circuits.UNHOLD_ALL).unheld

    def open(self, circuit: str) -> Circuit:
        """It stays open until an operator closes it."""
        return self._request(circuits.OPEN, circuit=circuit)

    # ---- jobs

    def permits(self, jobs: Mapping[str, str]) -> dict[str, Permitted] | None:
        """Whether jobs of these routes may be run now; None: no circuit is watched.

        `jobs`: by route, the id of a claimed job that has it.
        """
        wanted = RouteNames([*jobs], [*jobs.values()])
        answer = self._request(job_circuits.PERMITS, wanted)
        return {one.route: one.permitted for one in answer.permits} if answer.is_watching else None

    def report(self, reports: Sequence[Reported]) -> None:
        """The outcomes of jobs that had a permit."""
        outcomes = [JobOutcome.of(one) for one in reports]
        self._request(job_circuits.OUTCOMES, JobOutcomes(outcomes))

    # ---- settings

    def settings(self) -> BreakerSettings:
        return self._request(circuit_settings.GET_BREAKER)

    def change_settings(self, changes: Mapping[str, Any]) -> BreakerSettings:
        return self._request(circuit_settings.CHANGE_BREAKER, changes)

    def reset_settings(self) -> BreakerSettings:
        return self._request(circuit_settings.RESET_BREAKER)

    def all_own_settings(self) -> Sequence[CircuitSettings]:
        """Those of the circuits that override settings of the breaker, by their routes."""
        return self._request(circuit_settings.LIST).circuits

    def own_settings(
        self, circuit: str | None = None, *, route: str | None = None
    ) -> CircuitSettings:
        """Those of the circuit with this hash, or of this route.  Raises CircuitNotFound."""
        return self._own_settings(circuit_settings.GET, circuit, route)

    def change_own_settings(
        self,
        changes: Mapping[str, Any],
        circuit: str | None = None,
        *,
        route: str | None = None,
    ) -> CircuitSettings:
        """Override these, and leave the other overrides."""
        return self._own_settings(circuit_settings.CHANGE, circuit, route, changes)

    def put_own_settings(
        self,
        overrides: Mapping[str, Any],
        circuit: str | None = None,
        *,
        route: str | None = None,
    ) -> CircuitSettings:
        """Override just these."""
        return self._own_settings(circuit_settings.PUT, circuit, route, overrides)

    def reset_own_settings(
        self, circuit: str | None = None, *, route: str | None = None
    ) -> CircuitSettings:
        """Override nothing."""
        return self._own_settings(circuit_settings.RESET, circuit, route)

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
