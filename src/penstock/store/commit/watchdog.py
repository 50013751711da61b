"""One thread per store that checks about once a second that no request waits forever.

It times out requests and observes the parts of the node.  Nothing it calls blocks.  Its time is the
sum of its own pauses: on a machine that was asleep or is overloaded no request times out early.
"""

from __future__ import annotations

import threading

from penstock.store.commit.pending import Timeouts
from penstock.supervision.health import Health
from penstock.supervision.threads import SupervisedThread

_LONGEST_TICK_MS = 1_000
_TICKS_PER_TIMEOUT = 20


class Watchdog:
    def __init__(self, timeouts: Timeouts, health: Health) -> None:
        self._timeouts = timeouts
        self._health = health
        self._now = 0
        self._is_closing = threading.Event()
        self._thread = SupervisedThread("penstock-watchdog", self._run, health=health)
        self._thread.start()

    def look(self, now: int) -> None:
        self._timeouts.expire(now)
        self._health.look(now)
        self._thread.part.moved()

    def close(self) -> None:
        self._is_closing.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            tick_ms = max(min(self._timeouts.timeout_ms // _TICKS_PER_TIMEOUT, _LONGEST_TICK_MS), 5)
            if self._is_closing.wait(tick_ms / 1000):
                return
            self._now += tick_ms
            self.look(self._now)
