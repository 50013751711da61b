"""The circuits of a server elsewhere, and the settings of its breaker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from penstock.client.remote.transport import Transport
from penstock.domain.circuit.circuit import CircuitState, Permit, Permitted, Reported, circuit_hash
from penstock.domain.circuit.overrides import BreakerOverrides
from penstock.domain.circuit.settings import BreakerSettings
from penstock.domain.errors import InvalidRequest


class Circuit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    hash: str
    pattern: str
    state: CircuitState
    fail_ratio: int
    held: int
    is_forced: bool = False
    reopened: int = 0
    opened_at: datetime | None = None
    metric_name: str | None = None
    awaiting_unhold: int = 0  # of those held
    held_queues: tuple[str, ...] = ()  # names, where one circuit was asked for


class _Circuits(msgspec.Struct, frozen=True):
    circuits: list[Circuit]


class _Permit(msgspec.Struct, frozen=True):
    route: str
    permit: Permit
    generation: int
    wait_ms: int = 0
    retry_ms: int = 0

    @property
    def permitted(self) -> Permitted:
        return Permitted(
            permit=self.permit,
            pattern=self.route,
            hash=circuit_hash(self.route),
            generation=self.generation,
            is_of_table=False,
            wait_ms=self.wait_ms,
            retry_ms=self.retry_ms,
        )


class _Permits(msgspec.Struct, frozen=True):
    is_watching: bool
    permits: list[_Permit]


class CircuitSettings(msgspec.Struct, frozen=True):
    circuit: str
    route: str
    overrides: BreakerOverrides
    settings: BreakerSettings  # in force


class _CircuitSettingsList(msgspec.Struct, frozen=True):
    circuits: list[CircuitSettings]


class _Closed(msgspec.Struct, frozen=True):
    closed: int


class _Unheld(msgspec.Struct, frozen=True):
    unheld: int


_circuit = msgspec.json.Decoder(Circuit)
_circuits = msgspec.json.Decoder(_Circuits)
_closed = msgspec.json.Decoder(_Closed)
_permits = msgspec.json.Decoder(_Permits)
_own_settings = msgspec.json.Decoder(CircuitSettings)
_all_own_settings = msgspec.json.Decoder(_CircuitSettingsList)
_unheld = msgspec.json.Decoder(_Unheld)
_settings = msgspec.json.Decoder(BreakerSettings)


class RemoteCircuits:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> list[Circuit]:
        """By their patterns."""
        return _circuits.decode(self._transport.call("GET", "/v1/circuits").body).circuits

    def get(self, circuit: str) -> Circuit:
        """Raises CircuitNotFound."""
        return _circuit.decode(self._transport.call("GET", _path(circuit)).body)

    def close(self, circuit: str) -> Circuit:
        answer = self._transport.call("POST", _path(circuit, "close"), is_safe=True)
        return _circuit.decode(answer.body)

    def close_all(self) -> int:
        """How many were not closed."""
        answer = self._transport.call("POST", "/v1/circuits/close", is_safe=True)
        return _closed.decode(answer.body).closed

    def unhold(self, circuit: str) -> int:
        """Unhold the queues of a circuit; returns how many were held."""
        answer = self._transport.call("POST", _path(circuit, "unhold"), is_safe=True)
        return _unheld.decode(answer.body).unheld

    def unhold_all(self) -> int:
        """Unhold every queue; returns how many were held."""
        answer = self._transport.call("POST", "/v1/circuits/unhold", is_safe=True)
        return _unheld.decode(answer.body).unheld

    def open(self, circuit: str) -> Circuit:
        """Until somebody closes it."""
        answer = self._transport.call("POST", _path(circuit, "open"), is_safe=True)
        return _circuit.decode(answer.body)

    def permits(self, jobs: Mapping[str, str]) -> dict[str, Permitted] | None:
        """Whether jobs of these routes may be run now; None: there is no need to ask or to tell.

        `jobs`: by route, the id of a claimed job that has it.
        """
        # Not to be repeated: a probe may have been given, and be on its way.
        body = {"routes": list(jobs), "ids": list(jobs.values())}
        answer = self._transport.call("POST", "/v1/circuits/permits", body=body)
        told = _permits.decode(answer.body)
        return {one.route: one.permitted for one in told.permits} if told.is_watching else None

    def report(self, reports: Sequence[Reported]) -> None:
        """What became of jobs that were let through."""
        body = {"outcomes": [_outcome(one) for one in reports]}
        self._transport.call("POST", "/v1/circuits/outcomes", body=body, is_safe=True)

    def settings(self) -> BreakerSettings:
        return _settings.decode(self._transport.call("GET", "/v1/breaker").body)

    def change_settings(self, changes: Mapping[str, Any]) -> BreakerSettings:
        answer = self._transport.call("PATCH", "/v1/breaker", body=changes, is_safe=True)
        return _settings.decode(answer.body)

    def reset_settings(self) -> BreakerSettings:
        answer = self._transport.call("DELETE", "/v1/breaker", is_safe=True)
        return _settings.decode(answer.body)

    def all_own_settings(self) -> Sequence[CircuitSettings]:
        """Of circuits that override settings of the breaker, by their routes."""
        answer = self._transport.call("GET", "/v1/circuits/settings")
        return _all_own_settings.decode(answer.body).circuits

    def own_settings(
        self, circuit: str | None = None, *, route: str | None = None
    ) -> CircuitSettings:
        """Of the circuit with this hash, or of this route.  Raises CircuitNotFound."""
        return self._own_settings("GET", circuit, route)

    def change_own_settings(
        self,
        changes: Mapping[str, Any],
        circuit: str | None = None,
        *,
        route: str | None = None,
    ) -> CircuitSettings:
        """Override these, and leave the other overrides."""
        return self._own_settings("PATCH", circuit, route, changes)

    def put_own_settings(
        self,
        overrides: Mapping[str, Any],
        circuit: str | None = None,
        *,
        route: str | None = None,
    ) -> CircuitSettings:
        """Override just these."""
        return self._own_settings("PUT", circuit, route, overrides)

    def reset_own_settings(
        self, circuit: str | None = None, *, route: str | None = None
    ) -> CircuitSettings:
        """Override nothing."""
        return self._own_settings("DELETE", circuit, route)

    def _own_settings(
        self,
        method: str,
        circuit: str | None,
        route: str | None,
        body: Mapping[str, Any] | None = None,
    ) -> CircuitSettings:
        if (circuit is None) == (route is None):
            raise InvalidRequest("name a circuit or a route, and not both")
        if route is not None:
            query = urlencode({"route": route})
            path = f"{_path(circuit_hash(route), 'settings')}?{query}"
        else:
            path = _path(circuit or "", "settings")
        answer = self._transport.call(method, path, body=body, is_safe=True)
        return _own_settings.decode(answer.body)


def _outcome(one: Reported) -> dict[str, object]:
    return {
        "route": one.permitted.pattern,
        "id": one.request_id,
        "outcome": one.outcome,
        "permit": one.permitted.permit,
        "generation": one.permitted.generation,
        "took_ms": one.took_ms,
    }


def _path(circuit: str, *more: str) -> str:
    return "/".join(("/v1/circuits", quote(circuit, safe=""), *more))
