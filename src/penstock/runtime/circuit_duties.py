"""The duties of circuits.  Every node tries them; the store lets one node run each per interval.

Settings may change at any time, so they are checked every second; the store is queried only when
something is due.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from penstock.domain.circuit.settings import BreakerSettings, BreakerTask
from penstock.ports.ticket import Ticket
from penstock.runtime.loop import Duty
from penstock.services.circuits.circuits import CircuitService, TickResult
from penstock.services.circuits.held_queues import HeldQueues

CHECK_MS = 1_000

_log = logging.getLogger("penstock.circuits")


class Tick(Protocol):
    def __call__(self, *, now: int) -> Ticket[TickResult]: ...


class CircuitDuty:
    def __init__(
        self,
        name: str,
        circuits: CircuitService,
        do: Tick,
        task: Callable[[BreakerSettings], BreakerTask],
    ) -> None:
        self.name = name
        self._circuits = circuits
        self._do = do
        self._task = task
        self._known: BreakerTask | None = None
        self._next_at = 0

    def tick(self, now: int) -> int:
        task = self._task(self._circuits.settings)
        if task != self._known:  # as in gateleen, new settings restart the interval
            self._known, self._next_at = task, 0
        if not task.enabled:
            return now + CHECK_MS
        if self._next_at <= now:
            ticked = self._do(now=now).result()
            self._next_at = ticked.next_at
            if ticked.done:
                _log.info("%s: %d", self.name, ticked.done)
        return min(max(self._next_at, now + 1), now + CHECK_MS)


class IdleHolds:
    """Unhold queues that no circuit and none of the duties above would unhold."""

    name = "idle holds"

    def __init__(self, held_queues: HeldQueues) -> None:
        self._held_queues = held_queues

    def tick(self, now: int) -> int:
        unheld = self._held_queues.release_idle()
        if unheld:
            _log.info("unheld %d queues that no circuit would have unheld", unheld)
        return now + CHECK_MS


def circuit_duties(circuits: CircuitService) -> Sequence[Duty]:
    return (
        CircuitDuty(
            "circuits half-opened", circuits, circuits.half_open_all, lambda s: s.open_to_half_open
        ),
        CircuitDuty(
            "queues released to probe", circuits, circuits.release_probes, lambda s: s.unlock_probes
        ),
        CircuitDuty("queues released", circuits, circuits.release_next, lambda s: s.unlock_queues),
        IdleHolds(circuits.held_queues),
    )
