"""The only module that reads time.

A clock set back must not hide messages, so the wall clock is read once, at the start; from then on
time is that value plus what a steady clock has counted.  The start value is never earlier than the
latest instant the store has seen (`floor`).
"""

from __future__ import annotations

import time
from collections.abc import Callable

NANOS_PER_MILLI = 1_000_000
TOLERATED_MS = 1_000  # so far a process may stand behind the latest instant of another

_TRIES = 5
_SHORT_MS = 2  # so long a question to a database may take, and no more is asked

# CLOCK_BOOTTIME also counts while the machine sleeps; not every system has it.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def _steady_ms() -> int:
    return time.clock_gettime_ns(_STEADY) // NANOS_PER_MILLI


def wall_ms() -> int:
    return time.time_ns() // NANOS_PER_MILLI


class SteadyClock:
    """Counts on from the start of the machine, the same in all its processes."""

    def now(self) -> int:
        return _steady_ms()


class SystemClock:
    def __init__(self, floor: int = 0, *, agree: Callable[[int], int] = lambda ms: ms) -> None:
        """`agree`: how far ahead of the steady clock those are who use the same store already.

        The steady clock is one for the whole machine, so from then on all of them have one time,
        whatever became of the wall clock between their starts.
        """
        steady = _steady_ms()
        offset = agree(max(wall_ms(), floor) - steady)
        self._offset = max(offset, floor - steady - TOLERATED_MS)

    def now(self) -> int:
        return _steady_ms() + self._offset


class ServerClock:
    """Follows the clock of a database that several nodes share; never goes back itself."""

    def __init__(self, ask: Callable[[], int]) -> None:
        self._ask = ask
        self._latest = 0
        self._offset = 0
        self.adjust()

    def adjust(self) -> None:
        """Measure anew; the answer is taken to be from the middle of the round trip.

        A long one says little: it may have waited for a connection on its way there, or back.
        """
        shortest = None
        for _ in range(_TRIES):
            before = _steady_ms()
            told = self._ask()
            after = _steady_ms()
            if shortest is None or after - before < shortest:
                shortest = after - before
                self._offset = told - (before + after) // 2
            if shortest <= _SHORT_MS:
                return

    def now(self) -> int:
        self._latest = max(self._latest, _steady_ms() + self._offset)
        return self._latest
