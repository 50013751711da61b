"""A job that this worker holds: in line for a slot, or running in one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import Enum, auto

from penstock.domain.errors import LeaseLost
from penstock.ports.work import Work
from penstock.worker.handling import Ready

LATE_START_MS = 20  # less than that is not worth an act

_starting = threading.Lock()  # whether a job with a time limit begins is decided once


class Way(Enum):
    """Where a job runs."""

    THREAD = auto()
    LOOP = auto()  # async handlers share one event loop
    SANDBOX = auto()  # a process of its own, which can be killed and may die


class Fate(Enum):
    """Why what its handler says does not count any more."""

    TIMED_OUT = auto()
    LOST = auto()  # the message is not ours any more
    GIVEN_BACK = auto()  # the worker ends, and has released it


class Held:
    """Also what its handler may ask for while it runs (`ports.work.Controls`)."""

    __slots__ = (
        "ask",
        "deadline",
        "fate",
        "has_slot",
        "is_late_start",
        "is_stopping",
        "lease_ms",
        "on_told",
        "place",
        "progress",
        "ready",
        "renewed_at",
        "started_at",
        "stop",
        "taken_at",
        "timeout_ms",
        "way",
        "work",
    )

    def __init__(
        self,
        ready: Ready,
        *,
        way: Way,
        place: int,
        now: int,
        timeout_ms: int | None,
        lease_ms: int,
        on_told: Callable[[Held], None],
    ) -> None:
        self.ready = ready
        self.work: Work = ready.work
        self.way = way
        self.place = place  # in the table that outlives this process
        self.taken_at = now
        self.renewed_at = now  # the lease
        self.timeout_ms = timeout_ms
        self.lease_ms = lease_ms
        self.on_told = on_told
        self.started_at = 0  # 0: not yet
        self.deadline: int | None = None
        self.fate: Fate | None = None
        self.has_slot = False  # in which it waits for its sandbox
        self.is_stopping = False
        self.is_late_start = False  # its time limit has counted while it stood in line
        self.progress: str | None = None
        self.stop: Callable[[], None] | None = None  # ends the handler, where that can be done
        self.ask: Callable[[], None] | None = None  # tells it, where it cannot see `is_stopping`

    def begin(self, now: int) -> bool:
        """False: it was given back meanwhile."""
        if self.timeout_ms is None:
            self.started_at = now
            return self.fate is None
        with _starting:
            if self.fate is not None:
                return False
            self.started_at = now
        self.deadline = now + self.timeout_ms
        self.is_late_start = now - self.taken_at > LATE_START_MS
        return True

    @property
    def start_by(self) -> int | None:
        """If it has not begun by then, it is better given back than timed out in line.

        One that has a slot is next as soon as a sandbox has started.  It can wait for as long as
        its lease needs no extension, because past its time limit that would be a time-out.
        """
        if self.started_at or self.timeout_ms is None or self.fate is not None:
            return None
        wait_ms = self.timeout_ms // 2
        return self.taken_at + (max(wait_ms, self.lease_ms // 3) if self.has_slot else wait_ms)

    def give_up(self) -> bool:
        """It has not begun, and shall not; False: too late."""
        with _starting:
            if not self.started_at and self.fate is None:
                self.fate = Fate.GIVEN_BACK
                return True
        return False

    @property
    def owes_time_out(self) -> bool:
        """It was stopped at its limit, and that is told when it has ended; a thread's, at once."""
        return self.fate is Fate.TIMED_OUT and self.way is not Way.THREAD

    def ask_to_stop(self) -> None:
        self.is_stopping = True
        if self.ask is not None:
            self.ask()

    def doom(self, fate: Fate) -> None:
        """Its result does not count any more; stop it if possible, ask it to stop if not."""
        self.fate = self.fate or fate
        self.ask_to_stop()
        if self.stop is not None:
            self.stop()

    def extend(self, *, lease_ms: int | None = None, progress: str | None = None) -> None:
        """Goes out with the worker's next turn: a handler may call it as often as it likes."""
        if self.fate is Fate.LOST:
            raise LeaseLost(self.work.id)
        if lease_ms is not None:
            self.lease_ms = max(lease_ms, self.lease_ms)  # a shorter one would not be kept in time
        if progress is not None:
            self.progress = progress
        self.on_told(self)
