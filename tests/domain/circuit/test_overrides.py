"""Settings of single circuits: merged over the defaults, checked by the same rules."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from penstock.domain.circuit.overrides import (
    NONE,
    BreakerOverrides,
    change,
    check_route,
    merge,
    read,
)
from penstock.domain.circuit.settings import BreakerSettings
from penstock.domain.errors import InvalidRequest

DEFAULTS = BreakerSettings(error_threshold_percentage=70, slow_call_ms=500)


def test_a_circuit_has_the_defaults_but_for_what_it_overrides() -> None:
    own = BreakerOverrides(error_threshold_percentage=50, slow_call_ms=None)

    found = merge(DEFAULTS, own)

    assert (found.error_threshold_percentage, found.slow_call_ms) == (50, None)
    assert merge(found, NONE) == found
    assert merge(DEFAULTS, NONE) == DEFAULTS


def test_every_override_is_one_of_the_breakers_settings() -> None:
    assert set(BreakerOverrides.__struct_fields__) < set(BreakerSettings.__struct_fields__)


def test_only_what_is_set_is_written() -> None:
    own = read({"slow_call_ms": None, "single_probe": False})

    assert msgspec.json.decode(msgspec.json.encode(own)) == own.values()
    assert own.values() == {"slow_call_ms": None, "single_probe": False}


def test_a_change_leaves_what_it_does_not_name() -> None:
    before = read({"error_threshold_percentage": 50, "min_queue_sample_count": 5})

    after = change({"min_queue_sample_count": 7}, before)

    assert after.values() == {"error_threshold_percentage": 50, "min_queue_sample_count": 7}


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"error_threshold_percentage": 101}, "error_threshold_percentage must be from 0 to 100"),
        ({"error_threshold_percentage": "50"}, "Expected `int"),
        ({"min_open_ms": -1}, "min_open_ms"),
        ({"nothing": 1}, "nothing"),
        ({"unlock_queues": {"enabled": True}}, "unlock_queues: the same for all circuits"),
        ({"unlock_growth": 2, "max_unlocks": 3}, "max_unlocks, unlock_growth: the same"),
    ],
    ids=str,
)
def test_invalid_overrides_are_rejected(values: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidRequest, match=text):
        read(values)


@pytest.mark.parametrize("route", ["", "a\0b", "x" * 8_193])
def test_a_route_that_no_store_keeps_is_refused(route: str) -> None:
    with pytest.raises(InvalidRequest, match="a route has 1 to 8192 characters"):
        check_route(route)
    assert check_route("/pay/(.*)") == "/pay/(.*)"
