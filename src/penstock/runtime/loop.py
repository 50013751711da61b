"""The loop that runs duties.  A duty does what is due and returns when it is due again."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Protocol

from penstock.domain.errors import PenstockError, StoreUnavailable
from penstock.ports.clock import Clock
from penstock.ports.store import OUTAGES
from penstock.supervision.health import NodeHealth, NodePart
from penstock.supervision.threads import SupervisedThread

_log = logging.getLogger("penstock.duties")
_outages = logging.getLogger(OUTAGES)
_AFTER_ERROR_MS = 1_000


class Duty(Protocol):
    name: str

    def tick(self, now: int) -> int:
        """Do what is due; returns the instant of the next tick."""
        ...


class DutyLoop:
    """One thread for all duties: each is short, and none is needed for correctness."""

    def __init__(
        self,
        duties: Sequence[Duty],
        clock: Clock,
        *,
        name: str = "penstock-duties",
        stopped: threading.Event | None = None,
        health: NodeHealth | None = None,
        stuck_ms: int | None = None,
    ) -> None:
        """`stopped` is set when the loop is to end, so that long duties can check it.

        `stuck_ms`: how long one tick may take before the loop counts as stuck.
        """
        self._due = {duty.name: 0 for duty in duties}
        self._duties = {duty.name: duty for duty in duties}
        self._failing: dict[str, logging.Logger] = {}  # where the failure of a duty was logged
        self._clock = clock
        self._stopped = stopped or threading.Event()
        self._is_ticking = False
        self._part = NodePart(
            name.removeprefix("penstock-"), stuck_ms=stuck_ms, has_work=lambda: self._is_ticking
        )
        self._thread = SupervisedThread(
            name, self._run, health=health or NodeHealth(), part=self._part
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def run_due(self) -> int:
        """Tick every duty whose time has come; returns the earliest next instant."""
        for name, duty in self._duties.items():
            now = self._clock.now()  # read for each duty, as the previous one may have taken long
            if self._due[name] <= now and not self._stopped.is_set():
                self._due[name] = self._tick(duty, now)
        return min(self._due.values(), default=self._clock.now() + _AFTER_ERROR_MS)

    def _run(self) -> None:
        while not self._stopped.is_set():
            pause_ms = self.run_due() - self._clock.now()
            self._stopped.wait(max(pause_ms, 1) / 1000)

    def _tick(self, duty: Duty, now: int) -> int:
        self._is_ticking = True
        try:
            next_at = duty.tick(now)
        except PenstockError as error:
            # An unreachable store fails every duty every second: one log line is enough.
            is_outage = isinstance(error, StoreUnavailable)
            is_known = bool(self._failing) if is_outage else duty.name in self._failing
            self._failing[duty.name] = log = _outages if is_outage else _log
            level = logging.DEBUG if is_known else logging.WARNING
            log.log(level, "duty %s could not run: %s", duty.name, error)
        except Exception:
            _log.exception("duty %s failed", duty.name)
        else:
            logged_to = self._failing.pop(duty.name, None)
            if logged_to is not None:
                is_last = logged_to is _log or not self._failing
                level = logging.INFO if is_last else logging.DEBUG
                logged_to.log(level, "duty %s runs again", duty.name)
            return next_at
        finally:
            self._is_ticking = False
            self._part.moves += 1
        return now + _AFTER_ERROR_MS
