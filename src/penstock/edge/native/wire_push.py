"""The JSON of deliveries, routes and circuits, in and out."""

from __future__ import annotations

from typing import Literal

import msgspec

from penstock.domain.circuit.circuit import (
    CircuitState,
    Outcome,
    Permit,
    Permitted,
    Reported,
    circuit_hash,
)
from penstock.domain.circuit.overrides import BreakerOverrides
from penstock.domain.circuit.settings import BreakerSettings
from penstock.edge.instants import to_text
from penstock.services.circuits.circuits import CircuitView
from penstock.services.circuits.settings import SettingsView


class CircuitOut(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A circuit; what it does not have is left out."""

    hash: str
    pattern: str
    state: CircuitState
    fail_ratio: int
    held: int
    is_forced: bool
    reopened: int
    awaiting_unhold: int = 0
    opened_at: str | None = None
    metric_name: str | None = None
    held_queues: list[str] | None = None


class MinuteOut(msgspec.Struct):
    at: str
    successes: int
    failures: int
    fail_ratio: int


class MinutesOut(msgspec.Struct):
    minutes: list[MinuteOut]


class CircuitsOut(msgspec.Struct):
    circuits: list[CircuitOut]
    held: int
    awaiting_unhold: int


class CircuitSettingsOut(msgspec.Struct):
    circuit: str
    route: str
    overrides: BreakerOverrides
    settings: BreakerSettings


class CircuitSettingsListOut(msgspec.Struct):
    circuits: list[CircuitSettingsOut]


class UnheldOut(msgspec.Struct):
    unheld: int


class ClosedOut(msgspec.Struct):
    closed: int


class RouteNamesIn(msgspec.Struct, forbid_unknown_fields=True):
    routes: list[str]
    ids: list[str] = []


class RoutePermitOut(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Whether jobs of a route may be run now."""

    route: str
    permit: Permit
    generation: int
    wait_ms: int = 0
    retry_ms: int = 0


class RoutePermitsOut(msgspec.Struct):
    is_watching: bool
    permits: list[RoutePermitOut]


class JobOutcomeIn(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    route: str
    id: str
    outcome: Literal["success", "failure"] | None
    permit: Permit = Permit.GO
    generation: int = -1
    took_ms: int = 0

    @property
    def reported(self) -> Reported:
        permitted = Permitted(
            permit=self.permit,
            pattern=self.route,
            hash=circuit_hash(self.route),
            generation=self.generation,
            is_of_table=False,
        )
        outcome = None if self.outcome is None else Outcome(self.outcome)
        return Reported(permitted, self.id, outcome, self.took_ms)


class JobOutcomesIn(msgspec.Struct, forbid_unknown_fields=True):
    outcomes: list[JobOutcomeIn]


def permit_out(permitted: Permitted) -> RoutePermitOut:
    return RoutePermitOut(
        route=permitted.pattern,
        permit=permitted.permit,
        generation=permitted.generation,
        wait_ms=permitted.wait_ms,
        retry_ms=permitted.retry_ms,
    )


def circuit_out(view: CircuitView) -> CircuitOut:
    circuit = view.circuit
    return CircuitOut(
        hash=view.hash,
        pattern=circuit.pattern,
        state=circuit.state,
        fail_ratio=circuit.fail_ratio,
        held=view.held,
        is_forced=circuit.is_forced,
        reopened=circuit.reopened,
        awaiting_unhold=view.awaiting_unhold,
        opened_at=None if circuit.opened_at is None else to_text(circuit.opened_at),
        metric_name=view.metric_name,
    )


def circuit_settings_out(view: SettingsView) -> CircuitSettingsOut:
    return CircuitSettingsOut(view.circuit, view.route, view.overrides, view.settings)
