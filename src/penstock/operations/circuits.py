"""Circuits, and the settings of the breaker.

Circuits are shared by all queues.  A key for some queues sees only the circuits that hold one of
them, and cannot change any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from penstock.api import circuits
from penstock.api.circuits import (
    Circuit,
    CircuitRoute,
    CircuitSettings,
    CircuitSettingsList,
    CircuitsOfRoute,
    Closed,
    Minute,
    Minutes,
    Unheld,
)
from penstock.api.operation import ToInstant
from penstock.domain.access.api_key import is_limited, sees
from penstock.domain.circuit import overrides
from penstock.domain.circuit.overrides import NONE, check_route
from penstock.domain.circuit.settings import BreakerSettings, change
from penstock.domain.errors import CircuitNotFound
from penstock.operations.call import Call, Handlers
from penstock.ports.unit_of_work import Steps, Work
from penstock.services.circuits.breaker import Breaker, ChangeOverrides
from penstock.services.circuits.circuit_settings import CircuitSettingsService as Settings
from penstock.services.circuits.circuits import CircuitService, CircuitView
from penstock.services.circuits.details import MAX_HELD, CircuitDetails


class CircuitOperations:
    def __init__(self, service: CircuitService, details: CircuitDetails) -> None:
        self._circuits = service
        self._details = details

    def handlers(self) -> Handlers:
        return {
            circuits.LIST: self.list,
            circuits.GET: self.get,
            circuits.SAMPLES: self.samples,
            circuits.CLOSE_ALL: self.close_all,
            circuits.CLOSE: self.close,
            circuits.UNHOLD_ALL: self.unhold_all,
            circuits.UNHOLD: self.unhold,
            circuits.OPEN: self.open,
        }

    def list(self, call: Call[None, CircuitsOfRoute]) -> Steps[circuits.Circuits]:
        route = call.query.route
        found = yield from self._circuits.overview()
        views = [*found.circuits.values()]
        if route is not None:
            views = [self._circuits.view_of(check_route(route), found)]
        held, awaiting = sum(found.held.values()), found.awaiting_unhold
        if is_limited(call.caller):
            own = yield from self._details.held_among(partial(sees, call.caller))
            views = _limit_views(views, own)
            held, awaiting = sum(map(len, own.values())), 0
        views.sort(key=lambda view: view.circuit.pattern)
        listed = [_circuit(view, call.instant) for view in views]
        return circuits.Circuits(circuits=listed, held=held, awaiting_unhold=awaiting)

    def get(self, call: Call[None, None]) -> Steps[Circuit]:
        found, held = yield from self._visible(call)
        if held is None:
            held = yield from self._details.held_queues(found.hash)
        return _circuit(found, call.instant, held_queues=[*held[:MAX_HELD]])

    def samples(self, call: Call[None, None]) -> Steps[Minutes]:
        yield from self._visible(call)
        minutes = yield from self._details.minutes(call.path["circuit"])
        return Minutes(minutes=[Minute.copy_of(minute, call.instant) for minute in minutes])

    def close_all(self, call: Call[None, None]) -> Work[Closed]:
        return self._circuits.close_all().map(lambda count: Closed(closed=count))

    def close(self, call: Call[None, None]) -> Steps[Circuit]:
        circuit = call.path["circuit"]
        yield from self._existing(circuit)
        yield from self._circuits.close(circuit)
        return _circuit((yield from self._existing(circuit)), call.instant)

    def unhold_all(self, call: Call[None, None]) -> Steps[Unheld]:
        return Unheld(unheld=(yield from self._circuits.held_queues.unhold()))

    def unhold(self, call: Call[None, None]) -> Steps[Unheld]:
        circuit = call.path["circuit"]
        unheld = yield from self._circuits.held_queues.unhold(circuit)
        if not unheld:  # a removed circuit may still hold queues
            yield from self._existing(circuit)
        return Unheld(unheld=unheld)

    def open(self, call: Call[None, None]) -> Steps[Circuit]:
        circuit = call.path["circuit"]
        yield from self._circuits.force_open(circuit)
        return _circuit((yield from self._existing(circuit)), call.instant)

    def _existing(self, circuit: str) -> Steps[CircuitView]:
        found = yield from self._circuits.find(circuit)
        if found is None:
            raise CircuitNotFound(circuit)
        return found

    def _visible(self, call: Call[None, None]) -> Steps[tuple[CircuitView, Sequence[str] | None]]:
        """The circuit, and for a limited key those of its queues that the circuit holds.

        Raises CircuitNotFound, also if the key is limited and the circuit holds none of its queues.
        """
        found = yield from self._existing(call.path["circuit"])
        if not is_limited(call.caller):
            return found, None
        own = yield from self._details.held_among(partial(sees, call.caller))
        views = _limit_views([found], own)
        if not views:
            raise CircuitNotFound(found.hash)
        return views[0], own[found.hash]


def _limit_views(
    views: Iterable[CircuitView], own: Mapping[str, Sequence[str]]
) -> list[CircuitView]:
    """The circuits that hold queues of a limited key, and how many of its queues each holds."""
    return [
        replace(view, held=len(own[view.hash]), awaiting_unhold=0)
        for view in views
        if view.hash in own
    ]


def _circuit(
    view: CircuitView, instant: ToInstant, *, held_queues: list[str] | None = None
) -> Circuit:
    return Circuit.copy_of(
        view.circuit,
        instant,
        hash=view.hash,
        held=view.held,
        awaiting_unhold=view.awaiting_unhold,
        metric_name=view.metric_name,
        held_queues=held_queues,
    )


Values = dict[str, Any]


class CircuitSettingsOperations:
    def __init__(self, breaker: Breaker, service: Settings) -> None:
        self._breaker = breaker
        self._settings = service

    def handlers(self) -> Handlers:
        return {
            circuits.GET_BREAKER: self.get_breaker,
            circuits.CHANGE_BREAKER: self.change_breaker,
            circuits.RESET_BREAKER: self.reset_breaker,
            circuits.LIST_SETTINGS: self.list,
            circuits.GET_SETTINGS: self.get,
            circuits.PUT_SETTINGS: self.put,
            circuits.CHANGE_SETTINGS: self.change,
            circuits.RESET_SETTINGS: self.reset,
        }

    def get_breaker(self, call: Call[None, None]) -> Work[BreakerSettings]:
        return self._breaker.get()

    def change_breaker(self, call: Call[Values, None]) -> Work[BreakerSettings]:
        return self._breaker.change(partial(change, call.body))

    def reset_breaker(self, call: Call[None, None]) -> Work[BreakerSettings]:
        return self._breaker.reset()

    def list(self, call: Call[None, None]) -> Work[CircuitSettingsList]:
        return self._settings.all().map(
            lambda views: CircuitSettingsList(
                circuits=[CircuitSettings.copy_of(view) for view in views]
            )
        )

    def get(self, call: Call[None, CircuitRoute]) -> Work[CircuitSettings]:
        return self._settings.get(call.path["circuit"], route=call.query.route).map(
            CircuitSettings.copy_of
        )

    def put(self, call: Call[Values, CircuitRoute]) -> Work[CircuitSettings]:
        wanted = overrides.read(call.body)
        return self._change(call, lambda _: wanted)

    def change(self, call: Call[Values, CircuitRoute]) -> Work[CircuitSettings]:
        return self._change(call, partial(overrides.change, call.body))

    def reset(self, call: Call[None, CircuitRoute]) -> Work[CircuitSettings]:
        return self._change(call, lambda _: NONE)

    def _change(
        self, call: Call[Any, CircuitRoute], change: ChangeOverrides
    ) -> Work[CircuitSettings]:
        circuit, route = call.path["circuit"], call.query.route
        changed = self._settings.change(circuit, change, route=route)
        return changed.map(CircuitSettings.copy_of)
