"""Changing some settings of the breaker and leaving the others."""

from __future__ import annotations

import pytest

from penstock.domain.circuit.settings import BreakerSettings, BreakerTask, change
from penstock.domain.errors import InvalidRequest

BEFORE = BreakerSettings(open_to_half_open=BreakerTask(enabled=False, interval_ms=5_000))


def test_a_setting_that_is_not_named_does_not_change():
    after = change({"slow_call_ms": 500}, BEFORE)

    assert after.slow_call_ms == 500
    assert after.open_to_half_open == BEFORE.open_to_half_open


def test_a_part_of_a_task_is_changed_without_the_other_part():
    after = change({"open_to_half_open": {"enabled": True}}, BEFORE)

    assert after.open_to_half_open == BreakerTask(enabled=True, interval_ms=5_000)


@pytest.mark.parametrize(
    "wrong",
    [
        {"unknown": 1},
        {"open_to_half_open": {"unknown": 1}},
        {"open_to_half_open": True},
        {"slow_call_ms": {"a": 1}},
        {"error_threshold_percentage": 101},
    ],
)
def test_invalid_settings_are_rejected(wrong):
    with pytest.raises(InvalidRequest):
        change(wrong, BEFORE)
