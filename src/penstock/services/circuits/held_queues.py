"""Held queues: unholds them for operators, and when no circuit or duty would ever do it.

A circuit holds queues only while it is checked.  After it closes, its queues wait for the
`unlock_queues` duty, which releases them in order.  Queues of circuits that are no longer checked
join them; if the duty is off, all of them are unheld at once.  So a queue stays held only for a
reason that an operator can see: its circuit is open or half-open, or the duty has not reached it.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

import msgspec

from penstock.ports.clock import Clock
from penstock.ports.store import Session, Store
from penstock.ports.unit_of_work import Steps, Work, write
from penstock.services.circuits import transitions
from penstock.services.circuits.breaker import Breaker

CHUNK = 1_000  # queues per transaction


class UnheldChunk(msgspec.Struct, frozen=True):
    """One chunk of queues that an operator unheld."""

    count: int
    after: int | None  # where the next chunk begins; None: this was the last one


class HeldQueues:
    def __init__(self, store: Store, clock: Clock, breaker: Breaker) -> None:
        self._store = store
        self._clock = clock
        self._breaker = breaker

    def unhold_some(self, circuit_hash: str | None = None, *, after: int = 0) -> Work[UnheldChunk]:
        """Unhold a chunk of the queues of a circuit, or of all; repeat while `after` is set.

        In order of queue number, so that a queue that an open circuit holds again meanwhile is not
        visited twice.
        """
        now = self._clock.now()

        def do(session: Session) -> UnheldChunk:
            page = session.circuits.held_page(circuit_hash, after=after, limit=CHUNK)
            unheld = transitions.unhold(session, [queue_no for queue_no, _ in page], now=now)
            circuits = Counter(held_by for queue_no, held_by in page if queue_no in unheld)
            for one, count in sorted(circuits.items()):
                transitions.add_unheld_fact(session, one, {"queues": count}, now=now)
            return UnheldChunk(len(unheld), page[-1][0] if len(page) == CHUNK else None)

        return write(self._store, do)

    def unhold(self, circuit_hash: str | None = None) -> Steps[int]:
        """Unhold all queues of a circuit, or of all circuits; returns how many were held."""
        total, after = 0, 0
        while True:
            unheld = yield from self.unhold_some(circuit_hash, after=after)
            total += unheld.count
            if unheld.after is None:
                return total
            after = unheld.after

    def release_idle(self) -> int:
        """Unhold queues that no circuit or duty would unhold; returns how many."""
        total = 0
        release = partial(self._release_some, now=self._clock.now())
        while self._store.read(self._is_anything_idle).result():
            unheld = self._store.write(release).result()
            total += unheld
            if unheld < CHUNK:
                break
        return total

    def _is_anything_idle(self, session: Session) -> bool:
        return bool(
            self._unchecked(session) or (self._is_at_once and session.circuits.next_for_release(1))
        )

    def _release_some(self, session: Session, *, now: int) -> int:
        session.circuits.queue_for_release(list(session.circuits.lock(self._unchecked(session))))
        if not self._is_at_once:
            return 0
        taken = session.circuits.take_for_release(CHUNK)
        transitions.release(session, taken, now=now)
        return len(taken)

    @property
    def _is_at_once(self) -> bool:
        return not self._breaker.settings.unlock_queues.enabled

    def _unchecked(self, session: Session) -> list[str]:
        """Circuits with held queues whose requests are tried in any state of the circuit."""
        breaker = self._breaker
        if breaker.is_checking_all:
            return []
        holding = session.circuits.holding()
        return [one for one in holding if not breaker.of(one).circuit_check_enabled]
