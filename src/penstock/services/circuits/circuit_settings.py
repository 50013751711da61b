"""The settings of single circuits: the defaults with their overrides."""

from __future__ import annotations

import msgspec

from penstock.domain.circuit import circuit as circuits
from penstock.domain.circuit.overrides import NONE, BreakerOverrides, check_route, merge
from penstock.domain.circuit.settings import BreakerSettings
from penstock.domain.errors import CircuitNotFound, InvalidRequest
from penstock.ports.store import Session, Store
from penstock.ports.unit_of_work import Work, read, write
from penstock.services.circuits.breaker import Breaker, ChangeOverrides
from penstock.services.routes import RouteService


class SettingsView(msgspec.Struct, frozen=True):
    circuit: str  # hash
    route: str
    overrides: BreakerOverrides
    settings: BreakerSettings  # in force: the defaults with the overrides


class CircuitSettingsService:
    """The settings of single circuits: read, change, list."""

    def __init__(self, store: Store, routes: RouteService, breaker: Breaker) -> None:
        self._store = store
        self._routes = routes
        self._breaker = breaker

    def all(self) -> Work[list[SettingsView]]:
        """The settings of circuits with overrides, by route."""

        def do(session: Session) -> list[SettingsView]:
            defaults = self._breaker.read(session)
            found = self._breaker.overrides.read(session)
            return [_view(route, found[route], defaults) for route in sorted(found)]

        return read(self._store, do)

    def get(self, circuit_hash: str, *, route: str | None = None) -> Work[SettingsView]:
        """Raises CircuitNotFound.  `route`: needed if the circuit is not stored yet."""

        def do(session: Session) -> SettingsView:
            named = self._route_of(session, circuit_hash, route)
            overrides = self._breaker.overrides.read(session).get(named, NONE)
            return _view(named, overrides, self._breaker.read(session))

        return read(self._store, do)

    def change(
        self, circuit_hash: str, change: ChangeOverrides, *, route: str | None = None
    ) -> Work[SettingsView]:
        """Change overrides; raises CircuitNotFound, or InvalidRequest, and then stores nothing."""

        def do(session: Session) -> SettingsView:
            named = self._route_of(session, circuit_hash, route)
            overrides = self._breaker.overrides.change(session, named, change)
            return _view(named, overrides, self._breaker.read(session))

        return write(self._store, do)

    def _route_of(self, session: Session, circuit_hash: str, given: str | None) -> str:
        if given is not None:
            own_hash = circuits.circuit_hash(check_route(given))
            if own_hash != circuit_hash:
                raise InvalidRequest(
                    f"the circuit of route {given!r} is {own_hash}, not {circuit_hash}"
                )
            return given
        of_table = self._routes.of_hash(circuit_hash)
        if of_table is not None:
            return of_table.pattern
        known = session.circuits.find([circuit_hash]).get(circuit_hash)
        if known is not None:
            return known.pattern
        for route in self._breaker.overrides.read(session):
            if circuits.circuit_hash(route) == circuit_hash:
                return route
        raise CircuitNotFound(circuit_hash)


def _view(route: str, overrides: BreakerOverrides, defaults: BreakerSettings) -> SettingsView:
    return SettingsView(circuits.circuit_hash(route), route, overrides, merge(defaults, overrides))
