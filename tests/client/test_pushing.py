"""The client's view of routes and circuits."""

from __future__ import annotations

import msgspec
import pytest

from penstock.client.remote.server import Remote
from penstock.domain import errors
from penstock.domain.circuit.circuit import CircuitState
from penstock.domain.circuit.settings import BreakerSettings

pytestmark = pytest.mark.no_store("server")

RULES = msgspec.Raw(b'{"/shop/(.*)": {"url": "http://127.0.0.1:9/$1", "metricName": "shop"}}')


def test_a_circuit_is_opened_and_closed(remote: Remote):
    [route] = remote.routes.put(RULES)

    opened = remote.circuits.open(route.circuit)

    assert (opened.state, opened.is_forced) == (CircuitState.OPEN, True)
    assert remote.circuits.get(route.circuit) == opened
    assert opened in remote.circuits.list()
    assert remote.circuits.close(route.circuit).state is CircuitState.CLOSED
    remote.circuits.open(route.circuit)
    assert remote.circuits.close_all() == 1
    with pytest.raises(errors.CircuitNotFound):
        remote.circuits.get("none")


def test_settings_are_changed_and_reset(remote: Remote):
    changed = remote.circuits.change_settings({"single_probe": True})

    assert changed == remote.circuits.settings() == BreakerSettings(single_probe=True)
    assert remote.circuits.reset_settings() == BreakerSettings()
