"""The rate limit of commands that send."""

from __future__ import annotations

import threading

from penstock.edge.cli.kit.throttle import Throttle
from tests.clocks import ManualClock


class Pause(threading.Event):
    """A pause that advances the clock."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock = clock

    def wait(self, timeout: float | None = None) -> bool:
        self._clock.advance(ms=round((timeout or 0) * 1000))
        return False


def test_the_rate_is_not_exceeded():
    clock = ManualClock()
    throttle = Throttle(100, clock, Pause(clock))
    began = clock.now()
    for _ in range(50):
        throttle.wait_for(throttle.most)
    sent = 50 * throttle.most
    assert throttle.most == 10
    assert sent - throttle.most <= (clock.now() - began) * 100 / 1000 <= sent


def test_without_a_rate_there_is_no_wait():
    clock = ManualClock()
    throttle = Throttle(None, clock, Pause(clock))
    before = clock.now()
    throttle.wait_for(throttle.most)
    assert clock.now() == before


def test_a_small_rate_sends_one_at_a_time():
    assert Throttle(3, ManualClock()).most == 1
