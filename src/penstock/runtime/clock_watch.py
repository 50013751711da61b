"""Logs when the wall clock and the store's time diverge while the server runs."""

from __future__ import annotations

import logging

from penstock.domain.store.store_time import MAX_CARRY_MS, difference_text, instant_text
from penstock.ports.clock import Clock

_log = logging.getLogger("penstock.clock")


class ClockWatch:
    """Warns once when the wall clock has been set, and logs when both agree again.

    The store's time follows the wall clock only at the next start, so that leases and delays stay
    exact.  Until then due dates are early or late by the difference.
    """

    name = "clock"

    def __init__(self, wall: Clock, *, every_ms: int) -> None:
        self._wall = wall
        self._every_ms = every_ms
        self._is_apart = False

    def tick(self, now: int) -> int:
        ahead_ms = now - self._wall.now()
        was_apart, self._is_apart = self._is_apart, abs(ahead_ms) > MAX_CARRY_MS
        if self._is_apart and not was_apart:
            _log.warning(
                "the store's time is %s, %s %s the wall clock (%s): due dates are judged by the"
                " store's time until all processes that use the store are stopped and started",
                instant_text(now),
                difference_text(ahead_ms),
                "ahead of" if ahead_ms > 0 else "behind",
                instant_text(now - ahead_ms),
            )
        elif was_apart and not self._is_apart:
            _log.info("the wall clock and the store's time agree again")
        return now + self._every_ms
