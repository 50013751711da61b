"""How full a broker is, which fleets yield to that, and which alerts are raised."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.errors import FleetsRefused
from penstock.domain.scaling.pressure import (
    Pressure,
    PressureLimits,
    alerts_due,
    check_limits,
    level_of,
    yields,
)

LIMITS = PressureLimits()
MINUTE = 60_000


def pressure(memory: float | None = None, disk: int | None = None) -> Pressure:
    return Pressure(memory_percent=memory, disk_free_mb=disk)


@pytest.mark.parametrize(
    ("found", "level"),
    [
        (pressure(69.99), 0),
        (pressure(70), 1),
        (pressure(80), 2),
        (pressure(90), 3),
        (pressure(disk=401), 0),
        (pressure(disk=400), 1),
        (pressure(disk=200), 2),
        (pressure(disk=100), 3),
        (pressure(75, 150), 2),  # the worse counts
        (pressure(95, 500), 3),
        (pressure(), 0),
        (None, 0),
    ],
)
def test_the_level_is_the_worse_of_memory_and_disk(found: Pressure | None, level: int) -> None:
    assert level_of(found, LIMITS) == level


@pytest.mark.parametrize(
    ("order", "levels"),
    [(0, {1, 2, 3}), (1, {1, 2, 3}), (2, {2, 3}), (3, {2, 3}), (5, {3}), (6, set()), (None, set())],
)
def test_a_fleet_yields_from_the_level_on_that_its_order_says(
    order: int | None, levels: set[int]
) -> None:
    assert {level for level in range(4) if yields(order, level, LIMITS)} == levels


@given(memory=st.floats(0, 100), disk=st.integers(0, 1_000), order=st.integers(0, 9))
def test_a_fleet_that_yields_at_some_pressure_yields_at_a_worse_one(
    memory: float, disk: int, order: int
) -> None:
    now = level_of(pressure(memory, disk), LIMITS)
    worse = level_of(pressure(memory + 5, disk // 2), LIMITS)

    assert worse >= now
    assert yields(order, worse, LIMITS) or not yields(order, now, LIMITS)


@pytest.mark.parametrize(
    "wrong",
    [
        PressureLimits(memory_percent=(80, 70, 90)),
        PressureLimits(disk_free_mb=(100, 200, 400)),
        PressureLimits(yield_orders=(5, 3, 1)),
    ],
)
def test_a_worse_level_is_not_reached_before_a_better(wrong: PressureLimits) -> None:
    with pytest.raises(FleetsRefused):
        check_limits(wrong)


# ---- alerts


def due(found: Pressure | None, last: dict[str, int], now: int, **more: object) -> list[str]:
    limits = PressureLimits(**more)  # type: ignore[arg-type]
    alerts = alerts_due("rabbit", found, limits, last=last, every_ms=20 * MINUTE, now=now)
    return [alert.what for alert in alerts]


def test_memory_and_disk_raise_separate_alerts() -> None:
    assert due(pressure(71, 399), {}, 0) == ["memory", "disk"]
    assert due(pressure(71, 500), {}, 0) == ["memory"]
    assert due(pressure(60, 399), {}, 0) == ["disk"]
    assert due(pressure(60, 500), {}, 0) == []
    assert due(None, {}, 0) == []


def test_an_alert_is_not_repeated_too_soon() -> None:
    found = pressure(95)

    assert due(found, {"memory": MINUTE}, 21 * MINUTE - 1) == []
    assert due(found, {"memory": MINUTE}, 21 * MINUTE) == ["memory"]
    assert due(found, {"disk": MINUTE}, 2 * MINUTE) == ["memory"]


def test_alert_thresholds_can_be_set() -> None:
    assert due(pressure(85), {}, 0, alert_memory_percent=86.0) == []
    assert due(pressure(50), {}, 0, alert_memory_percent=50.0) == ["memory"]
    assert due(pressure(disk=900), {}, 0, alert_disk_free_mb=1_000) == ["disk"]
    assert due(pressure(disk=300), {}, 0, alert_disk_free_mb=200) == []


def test_an_alert_shows_its_value_with_two_decimals() -> None:
    [memory, disk] = alerts_due(
        "rabbit", pressure(71.237, 399), LIMITS, last={}, every_ms=MINUTE, now=7
    )

    assert "71.24 %" in memory.text
    assert "399.00 MB" in disk.text
    assert (memory.source, memory.level, memory.at) == ("rabbit", 1, 7)
