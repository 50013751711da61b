"""A wall clock that departs from the store's time is logged once."""

from __future__ import annotations

import pytest

from penstock.domain.limits import DAY, SECOND
from penstock.domain.store.store_time import MAX_CARRY_MS
from penstock.runtime.duties import ClockWatch
from tests.clocks import NOON, ManualClock


def test_a_wall_clock_that_is_set_is_logged_once_and_so_is_the_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "penstock.clock")
    wall = ManualClock()
    watch = ClockWatch(wall, every_ms=30 * SECOND)

    assert watch.tick(NOON) == NOON + 30 * SECOND
    watch.tick(NOON + MAX_CARRY_MS)
    assert caplog.messages == []

    watch.tick(NOON + 2 * DAY)
    watch.tick(NOON + 2 * DAY + SECOND)
    [message] = caplog.messages
    assert "2030-03-16T12:00:00.000Z, 2 d ahead of the wall clock (2030-03-14T12:00:00" in message

    wall.advance(days=2)
    watch.tick(NOON + 2 * DAY)
    assert caplog.messages[1:] == ["the wall clock and the store's time agree again"]
