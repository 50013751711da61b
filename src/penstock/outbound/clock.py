"""The only module that reads time.

A wall clock that is set back must not delay messages, so it is read once, at the start; from then
on the time is that value plus the progress of a steady clock.  `domain/store/store_time.py` decides
at which time a store starts.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from penstock.domain.store.store_time import MAX_CARRY_MS, difference_text

NANOS_PER_MILLI = 1_000_000
TOLERATED_MS = 1_000  # how far a process may be behind the latest instant of another

_TRIES = 5
_SHORT_MS = 2  # a round trip this short is exact enough; otherwise measure again

_log = logging.getLogger("penstock.clock")

# CLOCK_BOOTTIME also counts while the machine sleeps; not every system has it.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def _steady_ms() -> int:
    return time.clock_gettime_ns(_STEADY) // NANOS_PER_MILLI


def wall_ms() -> int:
    return time.time_ns() // NANOS_PER_MILLI


class SteadyClock:
    """Milliseconds since the machine started, the same in all its processes."""

    def now(self) -> int:
        return _steady_ms()


class WallClock:
    """The machine's current time: for signatures and headers that other machines check."""

    def now(self) -> int:
        return wall_ms()


class SystemClock:
    def __init__(
        self,
        start_at: int | None = None,
        *,
        floor: int = 0,
        agree: Callable[[int], int] = lambda ms: ms,
    ) -> None:
        """`start_at`: where time starts; the wall clock's time if None.

        `floor`: the latest instant that the store has seen.  `agree`: takes our offset from the
        steady clock and returns the one that processes with the same store use.  The steady clock
        is shared by the whole machine, so they all have the same time from then on, even if the
        wall clock was set between their starts.
        """
        steady = _steady_ms()
        self._offset = agree((wall_ms() if start_at is None else start_at) - steady)
        behind_ms = floor - (steady + self._offset)
        if TOLERATED_MS < behind_ms <= MAX_CARRY_MS:
            self._offset += behind_ms - TOLERATED_MS

    def now(self) -> int:
        return _steady_ms() + self._offset


class ServerClock:
    """Follows the clock of a database that several nodes share.

    It goes back only if that clock was set back by more than `MAX_CARRY_MS`; otherwise it stands
    still until the database has caught up.
    """

    def __init__(self, ask: Callable[[], int]) -> None:
        self._ask = ask
        self._latest = 0
        self._offset = 0
        self.adjust()

    def adjust(self) -> None:
        """Measure again; assumes that the answer is from the middle of the round trip.

        The shortest round trip counts: a long one may have waited for a connection.
        """
        shortest = None
        for _ in range(_TRIES):
            before = _steady_ms()
            answer = self._ask()
            after = _steady_ms()
            if shortest is None or after - before < shortest:
                shortest = after - before
                self._offset = answer - (before + after) // 2
            if shortest <= _SHORT_MS:
                return

    def now(self) -> int:
        latest, now = self._latest, _steady_ms() + self._offset
        if latest - now > MAX_CARRY_MS:
            _log.warning(
                "the clock of the database was set back by %s: following it",
                difference_text(latest - now),
            )
            self._latest = now
        else:
            self._latest = max(latest, now)
        return self._latest
