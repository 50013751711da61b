"""The settings of the circuit breaker, for all circuits and for single ones."""

from __future__ import annotations

from functools import partial
from typing import Any

from penstock.api import circuit_settings
from penstock.api.circuit_settings import CircuitRoute, CircuitSettings, CircuitSettingsList
from penstock.domain.circuit import overrides
from penstock.domain.circuit.overrides import NONE
from penstock.domain.circuit.settings import BreakerSettings, change
from penstock.operations.call import Call, Handlers
from penstock.ports.unit_of_work import Work
from penstock.services.circuits.breaker import Breaker, ChangeOverrides, SettingsView
from penstock.services.circuits.breaker import CircuitSettingsService as Settings

Values = dict[str, Any]


class CircuitSettingsOperations:
    def __init__(self, breaker: Breaker, service: Settings) -> None:
        self._breaker = breaker
        self._settings = service

    def handlers(self) -> Handlers:
        return {
            circuit_settings.GET_BREAKER: self.get_breaker,
            circuit_settings.CHANGE_BREAKER: self.change_breaker,
            circuit_settings.RESET_BREAKER: self.reset_breaker,
            circuit_settings.LIST: self.list,
            circuit_settings.GET: self.get,
            circuit_settings.PUT: self.put,
            circuit_settings.CHANGE: self.change,
            circuit_settings.RESET: self.reset,
        }

    def get_breaker(self, call: Call[None, None]) -> Work[BreakerSettings]:
        return self._breaker.get()

    def change_breaker(self, call: Call[Values, None]) -> Work[BreakerSettings]:
        return self._breaker.change(partial(change, call.body))

    def reset_breaker(self, call: Call[None, None]) -> Work[BreakerSettings]:
        return self._breaker.reset()

    def list(self, call: Call[None, None]) -> Work[CircuitSettingsList]:
        return self._settings.all().map(
            lambda views: CircuitSettingsList(circuits=[_settings(view) for view in views])
        )

    def get(self, call: Call[None, CircuitRoute]) -> Work[CircuitSettings]:
        return self._settings.get(call.path["circuit"], route=call.query.route).map(_settings)

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
        return self._settings.change(circuit, change, route=route).map(_settings)


def _settings(view: SettingsView) -> CircuitSettings:
    return CircuitSettings(
        circuit=view.circuit, route=view.route, overrides=view.overrides, settings=view.settings
    )
