"""The only module that reads time.

A clock set back must not hide messages, so the wall clock is read once, at the start; from then on
time is that value plus what a steady clock has counted.  Where a store starts is decided by
`domain/store/store_time.py`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from penstock.domain.store.store_time import MAX_CARRY_MS, difference_text

NANOS_PER_MILLI = 1_000_000
TOLERATED_MS = 1_000  # so far a process may stand behind the latest instant of another

_TRIES = 5
_SHORT_MS = 2  # so long a question to a database may take, and no more is asked

_log = logging.getLogger("penstock.clock")

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


class WallClock:
    """What the machine says now: for signatures and headers that other machines compare."""

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
        """`start_at`: where time starts, instead of now by the wall clock.

        `floor`: the latest instant that the store has seen.  `agree`: how far ahead of the steady
        clock the processes are that use the same store already.  The steady clock is one for the
        whole machine, so from then on all of them have one time, whatever became of the wall clock
        between their starts.
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

    Goes back only when that clock was set back by more than `MAX_CARRY_MS`: otherwise it stands
    still until the database has caught up.
    """

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
        latest, now = self._latest, _steady_ms() + self._offset
        if latest - now > MAX_CARRY_MS:
            _log.warning(
                "the clock of the database went back by %s: following it",
                difference_text(latest - now),
            )
            self._latest = now
        else:
            self._latest = max(latest, now)
        return self._latest
